/* One thread waits for the two signals; everyone else only reads a counter. */
#include "core/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/status.h"

struct fib_interrupt {
    pthread_t thread;
    bool started;
    sigset_t signals; /* SIGINT, SIGTERM and the private wake-up */
    atomic_int count;
    atomic_bool stop;
};

static void *wait_for_signals(void *context)
{
    struct fib_interrupt *const interrupt = context;
    for (;;) {
        int signal = 0;
        if (sigwait(&interrupt->signals, &signal) != 0)
            continue;
        if (atomic_load(&interrupt->stop))
            return NULL;
        if (atomic_fetch_add(&interrupt->count, 1) > 0)
            _exit(FIB_EXIT_INTERRUPTED);
    }
}

struct fib_interrupt *fib_interrupt_create(void)
{
    struct fib_interrupt *const interrupt = fib_zalloc(sizeof(*interrupt));
    sigemptyset(&interrupt->signals);
    sigaddset(&interrupt->signals, SIGINT);
    sigaddset(&interrupt->signals, SIGTERM);
    sigaddset(&interrupt->signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &interrupt->signals, NULL);
    interrupt->started = pthread_create(&interrupt->thread, NULL, wait_for_signals, interrupt) == 0;
    return interrupt;
}

void fib_interrupt_free(struct fib_interrupt **interrupt)
{
    if (!*interrupt)
        return;
    if ((*interrupt)->started) {
        atomic_store(&(*interrupt)->stop, true);
        pthread_kill((*interrupt)->thread, SIGUSR2);
        pthread_join((*interrupt)->thread, NULL);
    }
    free(*interrupt);
    *interrupt = NULL;
}

bool fib_interrupt_seen(void *context)
{
    const struct fib_interrupt *const interrupt = context;
    return atomic_load(&interrupt->count) > 0;
}
