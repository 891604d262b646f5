/* Runs one host implementation of a routine on host memory, without runner, ring or clock.
 *
 * Order of use: create, optionally edit inputs through host_run_data(), host_run_oracle(),
 * host_run_impl() (as often as wanted), host_run_check(), free. host_run_oracle() takes what the
 * tensors hold as the content before the call; host_run_impl() calls it itself when nobody has. */
#ifndef FIB_TESTS_HOST_RUN_H
#define FIB_TESTS_HOST_RUN_H

#include <stdint.h>

#include "core/case.h"
#include "core/check.h"
#include "core/problem.h"
#include "core/status.h"

struct host_run;

/* Checks and describes the case, allocates every tensor and fills inputs and in-place tensors with
 * this draw of the case's seed; outputs hold 0xff bytes. `kase` is borrowed. Any failure fails the
 * test. */
struct host_run *host_run_create(const struct fib_case *kase, uint32_t draw);
/* Accepts NULL. */
void host_run_free(struct host_run *run);

const struct fib_problem *host_run_problem(const struct host_run *run);
/* The tensor as the implementation sees it; may be edited. An unknown name fails the test. */
void *host_run_data(struct host_run *run, const char *name);

/* Fills the oracle's numbers for all rows and keeps in-place tensors for host_run_impl(). Has to be
 * called again after later edits of inputs. */
void host_run_oracle(struct host_run *run);
/* Oracle numbers of a checked tensor: row_count * row_elems. NULL before host_run_oracle(). */
const double *host_run_value(const struct host_run *run, const char *name);
const double *host_run_terms(const struct host_run *run, const char *name);
/* Stores the oracle's values, rounded, into every checked tensor: a perfect result. */
void host_run_store_oracle(struct host_run *run);

/* Restores in-place tensors, sets outputs to 0xff bytes, then prepare, run and release of the
 * implementation under `label` on a CPU. FIB_ERR_UNSUPPORTED when there is none or it refuses. */
enum fib_status host_run_impl(struct host_run *run, const char *label, struct fib_error *err);
/* What `resolved` said in the last host_run_impl(), or "". */
const char *host_run_resolved(const struct host_run *run);

/* Compares all rows of all checked tensors; float outputs are scanned for NaN and infinity too. */
void host_run_check(struct host_run *run, struct fib_verification *verification);

#endif
