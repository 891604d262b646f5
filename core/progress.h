/* One line on stderr that tells how far a list is and how long the rest takes. */
#ifndef FIB_CORE_PROGRESS_H
#define FIB_CORE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct fib_progress;

/* `tty`: the line is rewritten in place; otherwise a plain line appears at most every 10 s and no
 * control code ever. `quiet`: nothing is written. `total` cases are to come; now_ms is any
 * monotonic time. Never NULL. */
struct fib_progress *fib_progress_create(FILE *err, bool tty, bool quiet, size_t total,
                                         double now_ms);

/* Names the routine of each case of the plan, for a better estimate (`total` names, NULL allowed;
 * borrowed). Without it all cases count alike. */
void fib_progress_plan(struct fib_progress *progress, const char *const *routines);

/* Tells the time, between cases: the time since the last call is the cost of the case in between.
 */
void fib_progress_tick(struct fib_progress *progress, double now_ms);

/* A case begins: `done` are finished. `backends` is a space-separated list, shown as "a | b"; may
 * be NULL. */
void fib_progress_update(struct fib_progress *progress, size_t done, const char *title,
                         const char *backends);

/* Milliseconds the rest will take at the last tick: finished cases of the same routine set the
 * price, all finished cases that of a routine not seen yet. NaN before the first is finished. */
double fib_progress_left_ms(const struct fib_progress *progress);

/* Takes the line off the terminal, so that other output may follow. Accepts NULL. */
void fib_progress_clear(struct fib_progress *progress);
/* Clears and frees. Accepts NULL; resets the handle. */
void fib_progress_finish(struct fib_progress **progress);

#endif
