/* Ctrl-C and SIGTERM as a question that loops may ask, instead of a handler that cuts them off. */
#ifndef FIB_CORE_INTERRUPT_H
#define FIB_CORE_INTERRUPT_H

#include <stdbool.h>

struct fib_interrupt;

/* From now on the first SIGINT or SIGTERM is only noted: blocked in the calling thread and all
 * threads it starts later. The second one ends the process at once (the first is honoured between
 * two windows, which may take long).
 *
 * With a thread of its own the second signal ends even a busy process, with status 130. Without one
 * the process may fork: it must look at the descriptor or ask now and then, and a second signal is
 * lethal once the first has been seen. */
struct fib_interrupt *fib_interrupt_create(bool own_thread);
/* Stops the thread; signals that were not seen stay blocked. Accepts NULL; resets the handle. */
void fib_interrupt_free(struct fib_interrupt **interrupt);
/* True once a signal has arrived. context is the object, so that this fits as a callback. */
bool fib_interrupt_seen(void *interrupt);
/* Readable when a signal has arrived that was not seen yet, for poll(); -1 with an own thread. */
int fib_interrupt_fd(const struct fib_interrupt *interrupt);

#endif
