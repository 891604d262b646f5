/* A fixed set of worker threads that share loops. */
#ifndef FIB_CORE_POOL_H
#define FIB_CORE_POOL_H

#include <stddef.h>
#include <stdint.h>

struct fib_pool;

/* thread_count 0: one per processor this process may run on (affinity and cgroup quota honoured).
 * Threads are started on first use. Never NULL. */
struct fib_pool *fib_pool_create(unsigned thread_count);
void fib_pool_free(struct fib_pool **pool);
unsigned fib_pool_thread_count(const struct fib_pool *pool); /* >= 1; for NULL 1 */

typedef void fib_pool_body(void *context, int64_t first, int64_t last);

/* Calls body over disjoint ranges that cover [0, count), each at least `grain` long (the last one
 * may be shorter), and returns when all are done; the calling thread works too. One range per
 * thread, so the split depends only on count, grain and the thread count. With count <= grain, one
 * thread or a NULL pool the body runs on the calling thread alone. Not re-entrant from a body. */
void fib_pool_for(struct fib_pool *pool, int64_t count, int64_t grain, fib_pool_body *body,
                  void *context);

#endif
