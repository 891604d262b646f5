/* Ctrl-C and SIGTERM as a question that loops may ask, instead of a handler that cuts them off. */
#ifndef FIB_CORE_INTERRUPT_H
#define FIB_CORE_INTERRUPT_H

#include <stdbool.h>

struct fib_interrupt;

/* From now on SIGINT and SIGTERM are only counted: blocked in the calling thread and all threads it
 * starts later, received by one thread of this object. A second signal ends the process at once
 * with status 130 (the first is honoured between two windows, which may take long). */
struct fib_interrupt *fib_interrupt_create(void);
/* Stops the thread; the signals stay blocked. Accepts NULL; resets the handle. */
void fib_interrupt_free(struct fib_interrupt **interrupt);
/* True once a signal has arrived. context is the object, so that this fits as a callback. */
bool fib_interrupt_seen(void *interrupt);

#endif
