/* The two signals are blocked and fetched: by one thread that waits for them, or from a descriptor
 * by the loop itself. Everyone else only reads a counter. */
#include "core/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/status.h"

struct fib_interrupt {
    pthread_t thread;
    bool started;
    int signal_fd;    /* -1 with a thread */
    sigset_t signals; /* SIGINT, SIGTERM; for the thread also the private wake-up */
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

struct fib_interrupt *fib_interrupt_create(bool own_thread)
{
    struct fib_interrupt *const interrupt = fib_zalloc(sizeof(*interrupt));
    interrupt->signal_fd = -1;
    sigemptyset(&interrupt->signals);
    sigaddset(&interrupt->signals, SIGINT);
    sigaddset(&interrupt->signals, SIGTERM);
    if (own_thread)
        sigaddset(&interrupt->signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &interrupt->signals, NULL);
    if (own_thread)
        interrupt->started =
            pthread_create(&interrupt->thread, NULL, wait_for_signals, interrupt) == 0;
    else
        interrupt->signal_fd = signalfd(-1, &interrupt->signals, SFD_NONBLOCK | SFD_CLOEXEC);
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
    if ((*interrupt)->signal_fd >= 0)
        close((*interrupt)->signal_fd);
    free(*interrupt);
    *interrupt = NULL;
}

/* Takes a signal off the descriptor; the next one finds the default action. */
static void fetch(struct fib_interrupt *interrupt)
{
    struct signalfd_siginfo info;
    if (interrupt->signal_fd < 0 ||
        read(interrupt->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    atomic_fetch_add(&interrupt->count, 1);
    pthread_sigmask(SIG_UNBLOCK, &interrupt->signals, NULL);
}

bool fib_interrupt_seen(void *context)
{
    struct fib_interrupt *const interrupt = context;
    if (atomic_load(&interrupt->count) == 0)
        fetch(interrupt);
    return atomic_load(&interrupt->count) > 0;
}

int fib_interrupt_fd(const struct fib_interrupt *interrupt)
{
    return interrupt->signal_fd;
}
