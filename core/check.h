/* The checker: compares captured outputs with the oracle, in order of severity.
 *
 * Order: guard bytes, unwritten elements, NaN/Inf in the same places with the same sign, element
 * limits (or code rule), and a global relative L2 distance. A NaN never passes by accident: it
 * must be expected by the oracle at that very element. */
#ifndef FIB_CORE_CHECK_H
#define FIB_CORE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/problem.h"
#include "core/status.h"

struct fib_pool;

/* What was found over all checked tensors and rows so far. Zero-initialise. */
struct fib_verification {
    bool failed;
    char message[512];      /* first failure, one clause with positions and values */
    int64_t checked_rows;   /* most rows compared in one pass */
    int64_t compared_count; /* elements */
    int64_t mismatch_count;
    double max_abs_err, max_rel_err; /* NaN sticks: once NaN, always NaN */
    double diff_sq, ref_sq;          /* sums for rel_l2 */
};

/* sqrt(diff_sq / ref_sq); 0 when both are 0, inf when only ref is. */
double fib_verification_rel_l2(const struct fib_verification *verification);

/* Compares rows rows[0 .. row_count) of one written tensor. `output` is the whole tensor on the
 * host; value/terms hold row_count * row_elems oracle numbers in the order of `rows`. */
void fib_check_rows(const struct fib_problem *problem, int tensor_index, const void *output,
                    const int64_t *rows, int64_t row_count, const double *value,
                    const double *terms, struct fib_verification *verification);

/* Full scan of a float output for NaN and infinity where the sampled rows saw none in the oracle;
 * counts and reports the first position. */
void fib_check_finite(struct fib_pool *pool, const struct fib_tensor *tensor, const void *output,
                      struct fib_verification *verification);

/* Bits that are all one exactly in NaN and infinity of a format; 0 when it has neither. */
uint64_t fib_check_special_mask(enum fib_dtype dtype);

/* Elements that still hold the poison byte of each of two runs: unwritten. Elements of a float
 * format that hold it after the first run alone, where it is a NaN: written after that run's end.
 * Both captures whole. */
void fib_check_written(struct fib_pool *pool, const struct fib_tensor *tensor, const void *first,
                       int first_poison, const void *second, int second_poison,
                       struct fib_verification *verification);

/* Records a failure found elsewhere (guards, changed inputs); the first message is kept. */
void fib_verification_fail(struct fib_verification *verification, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Rows the oracle should see: all when they fit `flops_budget`, else a seeded sample of >= 64 rows
 * (>= 16 when 64 do not fit), always with first, last and the rows next to boundaries. Sorted,
 * distinct. Returns the count; rows[] has room for fib_check_row_limit(). */
int64_t fib_check_row_limit(const struct fib_problem *problem, double flops_budget);
int64_t fib_check_pick_rows(const struct fib_problem *problem, double flops_budget, uint64_t seed,
                            int64_t *rows);

#endif
