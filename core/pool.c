/* Worker threads that share loops. Each worker has its own mailbox, so a call only touches the
 * workers it needs. Both sides spin for some 50 us before they sleep: kernels of 20 us that follow
 * each other would otherwise pay a futex wake-up for every call. */
#include "core/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/host.h"
#include "core/memory.h"

enum { SPIN_NS = 50000, SPINS_PER_CLOCK_READ = 32, MAX_THREADS = 1024 };

/* Something to wait for: a counter that moves, and a bell for those who gave up spinning. */
struct bell {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    atomic_uint value;
    atomic_uint sleeper_count;
};

struct worker {
    struct fib_pool *pool;
    pthread_t thread;
    bool started;
    struct bell orders;  /* counts jobs given to this worker */
    fib_pool_body *body; /* NULL: end */
    void *context;
    int64_t first, last;
};

struct fib_pool {
    unsigned thread_count;
    bool asked; /* workers were started, or at least tried */
    bool may_spin;
    struct worker *workers[MAX_THREADS]; /* [thread_count - 1] */
    struct bell unfinished;              /* jobs given out and not done */
};

static void bell_init(struct bell *bell)
{
    pthread_mutex_init(&bell->mutex, NULL);
    pthread_cond_init(&bell->moved, NULL);
    atomic_init(&bell->value, 0);
    atomic_init(&bell->sleeper_count, 0);
}

static void bell_destroy(struct bell *bell)
{
    pthread_cond_destroy(&bell->moved);
    pthread_mutex_destroy(&bell->mutex);
}

/* Call after every change of the value. The value and the sleeper count are sequentially
 * consistent: either the waiter sees the new value or this sees the waiter. */
static void bell_ring(struct bell *bell)
{
    if (atomic_load(&bell->sleeper_count) == 0)
        return;
    pthread_mutex_lock(&bell->mutex);
    pthread_cond_broadcast(&bell->moved);
    pthread_mutex_unlock(&bell->mutex);
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* True when `value` (want_equal) equals or differs from `mark` before the spinning time is over. */
static bool bell_spin(struct bell *bell, unsigned mark, bool want_equal)
{
    const uint64_t end_ns = fib_host_now_ns() + SPIN_NS;
    do {
        for (int i = 0; i < SPINS_PER_CLOCK_READ; i++) {
            if ((atomic_load(&bell->value) == mark) == want_equal)
                return true;
            relax();
        }
    } while (fib_host_now_ns() < end_ns);
    return false;
}

/* Waits until value == mark (want_equal) or value != mark. */
static void bell_wait(struct bell *bell, unsigned mark, bool want_equal, bool may_spin)
{
    if ((atomic_load(&bell->value) == mark) == want_equal)
        return;
    if (may_spin && bell_spin(bell, mark, want_equal))
        return;
    pthread_mutex_lock(&bell->mutex);
    atomic_fetch_add(&bell->sleeper_count, 1);
    while ((atomic_load(&bell->value) == mark) != want_equal)
        pthread_cond_wait(&bell->moved, &bell->mutex);
    atomic_fetch_sub(&bell->sleeper_count, 1);
    pthread_mutex_unlock(&bell->mutex);
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct fib_pool *pool = worker->pool;
    for (unsigned done = 0;; done++) {
        bell_wait(&worker->orders, done, false, pool->may_spin);
        if (!worker->body)
            return NULL;
        worker->body(worker->context, worker->first, worker->last);
        if (atomic_fetch_sub(&pool->unfinished.value, 1) == 1)
            bell_ring(&pool->unfinished);
    }
}

struct fib_pool *fib_pool_create(unsigned thread_count)
{
    const unsigned cpu_count = fib_host_cpu_count();
    if (thread_count == 0)
        thread_count = cpu_count;
    if (thread_count > MAX_THREADS)
        thread_count = MAX_THREADS;
    struct fib_pool *pool = fib_zalloc(sizeof(*pool));
    pool->thread_count = thread_count;
    /* A spinning thread would keep the very thread it waits for from running. */
    pool->may_spin = thread_count <= cpu_count;
    bell_init(&pool->unfinished);
    return pool;
}

static void give(struct worker *worker, fib_pool_body *body, void *context, int64_t first,
                 int64_t last)
{
    worker->body = body;
    worker->context = context;
    worker->first = first;
    worker->last = last;
    atomic_fetch_add(&worker->orders.value, 1);
    bell_ring(&worker->orders);
}

void fib_pool_free(struct fib_pool **pool_ptr)
{
    struct fib_pool *pool = *pool_ptr;
    if (!pool)
        return;
    for (unsigned i = 0; pool->asked && i + 1 < pool->thread_count; i++) {
        struct worker *worker = pool->workers[i];
        if (worker->started) {
            give(worker, NULL, NULL, 0, 0);
            pthread_join(worker->thread, NULL);
        }
        bell_destroy(&worker->orders);
        free(worker);
    }
    bell_destroy(&pool->unfinished);
    free(pool);
    *pool_ptr = NULL;
}

unsigned fib_pool_thread_count(const struct fib_pool *pool)
{
    return pool ? pool->thread_count : 1;
}

/* A thread that cannot be started is no error: its share then runs on the caller. */
static void start_workers(struct fib_pool *pool)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(&blocked, faults[i]);
    /* Other signals stay with the thread that handles them. */
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    for (unsigned i = 0; i + 1 < pool->thread_count; i++) {
        struct worker *worker = fib_zalloc(sizeof(*worker));
        worker->pool = pool;
        bell_init(&worker->orders);
        worker->started = pthread_create(&worker->thread, NULL, worker_main, worker) == 0;
        pool->workers[i] = worker;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pool->asked = true;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

void fib_pool_for(struct fib_pool *pool, int64_t count, int64_t grain, fib_pool_body *body,
                  void *context)
{
    if (count <= 0)
        return;
    if (grain < 1)
        grain = 1;
    const int64_t share = ceil_div(count, fib_pool_thread_count(pool));
    const int64_t length = share > grain ? share : grain;
    const int64_t part_count = ceil_div(count, length);
    if (part_count < 2) {
        body(context, 0, count);
        return;
    }
    if (!pool->asked)
        start_workers(pool);
    for (int64_t i = 1; i < part_count; i++) {
        struct worker *worker = pool->workers[i - 1];
        if (!worker->started)
            continue;
        atomic_fetch_add(&pool->unfinished.value, 1);
        give(worker, body, context, i * length, i + 1 < part_count ? (i + 1) * length : count);
    }
    body(context, 0, length);
    for (int64_t i = 1; i < part_count; i++)
        if (!pool->workers[i - 1]->started)
            body(context, i * length, i + 1 < part_count ? (i + 1) * length : count);
    bell_wait(&pool->unfinished, 0, true, pool->may_spin);
}
