/* The problem of one case: its tensors, its work, and what the oracle says about its outputs. */
#ifndef FIB_CORE_PROBLEM_H
#define FIB_CORE_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dtype.h"
#include "core/fill.h"

enum { FIB_MAX_TENSORS = 16, FIB_MAX_RANK = 5 };

enum fib_role {
    FIB_INPUT = 0, /* read only: must be unchanged after every call */
    FIB_OUTPUT,    /* written in full: poisoned before the checked calls */
    FIB_INOUT,     /* updated in place: restored before every window and every backend */
    FIB_SCALAR     /* an input of a few elements that stays out of the ring's byte count */
};

enum fib_check_kind {
    FIB_CHECK_NONE = 0, /* inputs */
    FIB_CHECK_FLOAT,    /* |out - ref| <= u_out |ref| + 4 u_acc terms */
    FIB_CHECK_CODES     /* quantised: >= 99.9 % of codes equal, the rest one code off */
};

/* One tensor, row-major and contiguous. For outputs the leading dimensions form `row_count` oracle
 * rows of `row_elems` elements: row r is elements [r * row_elems, (r + 1) * row_elems). */
struct fib_tensor {
    const char *name;          /* also the seed of its content */
    enum fib_role role;
    enum fib_dtype dtype;
    int rank;
    int64_t shape[FIB_MAX_RANK];
    struct fib_fill fill;      /* inputs and in-place tensors */
    enum fib_check_kind check; /* outputs and in-place tensors */
    int64_t row_elems;         /* outputs and in-place tensors that are checked; inputs of which row
                                  r of the outputs needs nothing but row r; 0 = not in rows */
};

int64_t fib_tensor_elems(const struct fib_tensor *tensor);
size_t fib_tensor_bytes(const struct fib_tensor *tensor);
/* True for outputs and in-place tensors. */
bool fib_tensor_is_written(const struct fib_tensor *tensor);

/* Work of one call, counted physically: what the mathematics needs and what must move through
 * memory at least once. See docs/metrics.md for each routine's formula. */
struct fib_cost {
    double flops;
    double traffic_bytes;
};

struct fib_problem {
    struct fib_tensor tensors[FIB_MAX_TENSORS];
    int tensor_count;
    int64_t row_count;       /* oracle rows; the same for all checked tensors; may be 0 */
    double row_flops;        /* float64 operations of the oracle for one row, for its budget */
    int64_t boundary_row;    /* rows r with r % boundary_row in {0, boundary_row - 1} matter most
                                (first and last row of each batch entry); 0 = none */
    double accumulate_roundoff; /* u_acc of the tolerance: 2^-24 unless the format says otherwise */
    struct fib_cost cost;
};

/* Adds a tensor and returns it for further settings; asserts that there is room. */
struct fib_tensor *fib_problem_add(struct fib_problem *problem, const struct fib_tensor *tensor);
/* Index of the tensor with this name, or -1. */
int fib_problem_find(const struct fib_problem *problem, const char *name);

/* What the reference sees: host addresses of complete inputs, by tensor index (NULL for outputs;
 * in-place tensors hold their content before the call). */
struct fib_oracle_inputs {
    const void *data[FIB_MAX_TENSORS];
};

/* What the reference fills for rows [first, last): for each checked tensor t, `value[t]` and
 * `terms[t]` point at (last - first) * row_elems doubles. `terms` is the sum of the magnitudes of
 * what was added up for that element (the tolerance's scale); for FIB_CHECK_CODES it is ignored.
 * `value` holds the exact result *before* the final rounding to the output dtype for
 * FIB_CHECK_FLOAT, and the decoded value of the right code for FIB_CHECK_CODES. */
struct fib_oracle_rows {
    double *value[FIB_MAX_TENSORS];
    double *terms[FIB_MAX_TENSORS];
};

#endif
