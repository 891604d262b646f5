/* Runs the reference over the picked rows and holds a backend's outputs against it. */
#include "core/judge.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/pool.h"

/* Rounded down from what the references reach per thread on a 2020s server core. */
static const double oracle_flops_per_s = 1.2e9;

struct fib_judge {
    const struct fib_case *kase;
    const struct fib_problem *problem;
    struct fib_tensors *tensors;
    struct fib_pool *pool;
    int64_t *rows;
    int64_t row_count;
    struct fib_oracle_inputs inputs;
    void *inout_copy[FIB_MAX_TENSORS]; /* in-place tensors before the call, rows as needed */
    struct fib_oracle_rows oracle;     /* row_count * row_elems numbers per checked tensor */
};

double fib_judge_flops_budget(const struct fib_problem *problem, double seconds,
                              unsigned thread_count)
{
    const double budget = seconds * oracle_flops_per_s * thread_count;
    const double whole = (double)problem->row_count * problem->row_flops;
    return whole > budget / 10 && whole <= budget ? 0.999 * whole : budget;
}

static bool is_checked(const struct fib_tensor *tensor)
{
    return tensor->check != FIB_CHECK_NONE;
}

/* Runs of neighbouring rows go to the reference as one range, so it can share work. */
static void oracle_body(void *context, int64_t first, int64_t last)
{
    const struct fib_judge *const judge = context;
    const struct fib_problem *const problem = judge->problem;
    for (int64_t i = first; i < last;) {
        int64_t j = i + 1;
        while (j < last && judge->rows[j] == judge->rows[j - 1] + 1)
            j++;
        struct fib_oracle_rows part = {0};
        for (int t = 0; t < problem->tensor_count; t++) {
            const int64_t offset = i * problem->tensors[t].row_elems;
            if (!is_checked(&problem->tensors[t]))
                continue;
            part.value[t] = judge->oracle.value[t] + offset;
            part.terms[t] = judge->oracle.terms[t] + offset;
        }
        judge->kase->routine->reference(judge->kase, problem, &judge->inputs, judge->rows[i],
                                        judge->rows[j - 1] + 1, &part);
        i = j;
    }
}

/* What the oracle reads of an input: its rows, or all of it. In-place tensors are copied, since the
 * call changes them. Pages of a buffer that nobody touches take no memory. */
static enum fib_status collect_input(struct fib_judge *judge, int t, struct fib_error *err)
{
    const struct fib_tensor *const tensor = &judge->problem->tensors[t];
    const bool in_rows = tensor->row_elems > 0;
    const unsigned char *const host =
        in_rows ? fib_tensors_host_rows(judge->tensors, 0, t, judge->rows, judge->row_count, err)
                : fib_tensors_host(judge->tensors, 0, t, err);
    if (!host)
        return err->status;
    judge->inputs.data[t] = host;
    if (tensor->role != FIB_INOUT)
        return FIB_OK;
    unsigned char *const copy = fib_zalloc(fib_tensor_bytes(tensor));
    const size_t row_bytes = (size_t)tensor->row_elems * fib_dtype_bytes(tensor->dtype);
    for (int64_t i = 0; in_rows && i < judge->row_count; i++) {
        const size_t offset = (size_t)judge->rows[i] * row_bytes;
        memcpy(copy + offset, host + offset, row_bytes);
    }
    if (!in_rows)
        memcpy(copy, host, fib_tensor_bytes(tensor));
    judge->inputs.data[t] = judge->inout_copy[t] = copy;
    return FIB_OK;
}

static enum fib_status collect_inputs(struct fib_judge *judge, struct fib_error *err)
{
    enum fib_status st = FIB_OK;
    for (int t = 0; t < judge->problem->tensor_count && st == FIB_OK; t++)
        if (judge->problem->tensors[t].role != FIB_OUTPUT)
            st = collect_input(judge, t, err);
    return st;
}

static void run_oracle(struct fib_judge *judge)
{
    const struct fib_problem *const problem = judge->problem;
    for (int t = 0; t < problem->tensor_count; t++) {
        if (!is_checked(&problem->tensors[t]))
            continue;
        const size_t count = (size_t)(judge->row_count > 0 ? judge->row_count : 1) *
                             (size_t)problem->tensors[t].row_elems;
        judge->oracle.value[t] = fib_zalloc_array(count, sizeof(double));
        judge->oracle.terms[t] = fib_zalloc_array(count, sizeof(double));
    }
    const int64_t grain = problem->row_flops > 1e5 ? 1 : 16;
    fib_pool_for(judge->pool, judge->row_count, grain, oracle_body, judge);
}

enum fib_status fib_judge_create(const struct fib_case *kase, const struct fib_problem *problem,
                                 struct fib_tensors *tensors, struct fib_pool *pool,
                                 double flops_budget, uint64_t seed, struct fib_judge **judge_out,
                                 struct fib_error *err)
{
    struct fib_judge *judge = fib_zalloc(sizeof(*judge));
    judge->kase = kase;
    judge->problem = problem;
    judge->tensors = tensors;
    judge->pool = pool;
    const int64_t limit = fib_check_row_limit(problem, flops_budget);
    judge->rows = fib_zalloc_array((size_t)(limit > 0 ? limit : 1), sizeof(judge->rows[0]));
    judge->row_count = fib_check_pick_rows(problem, flops_budget, seed, judge->rows);
    const enum fib_status st = collect_inputs(judge, err);
    if (st != FIB_OK) {
        fib_judge_free(&judge);
        return st;
    }
    run_oracle(judge);
    *judge_out = judge;
    return FIB_OK;
}

void fib_judge_free(struct fib_judge **judge_in)
{
    struct fib_judge *const judge = *judge_in;
    if (!judge)
        return;
    for (int t = 0; t < FIB_MAX_TENSORS; t++) {
        free(judge->inout_copy[t]);
        free(judge->oracle.value[t]);
        free(judge->oracle.terms[t]);
    }
    free(judge->rows);
    free(judge);
    *judge_in = NULL;
}

static enum fib_status call_once(struct fib_judge *judge, const struct fib_judge_call *call,
                                 int poison, struct fib_error *err)
{
    enum fib_status st = fib_tensors_poison(judge->tensors, call->slot, poison, err);
    if (st == FIB_OK)
        st = fib_tensors_restore(judge->tensors, call->slot, err);
    if (st == FIB_OK)
        st = call->call(call->context, NULL, call->slot, err);
    if (st == FIB_OK)
        st = fib_tensors_synchronize(judge->tensors, err);
    return st;
}

/* The rows the oracle does not see: no NaN or infinity anywhere. On a device that can scan, a copy
 * is made only when there is something to show. */
static enum fib_status check_rest(struct fib_judge *judge, uint32_t slot, int t,
                                  struct fib_verification *verification, struct fib_error *err)
{
    const struct fib_tensor *const tensor = &judge->problem->tensors[t];
    const uint64_t mask = fib_check_special_mask(tensor->dtype);
    struct fib_scan_hits hits = {.count = 1};
    enum fib_status st = FIB_OK;
    if (mask != 0 && fib_tensors_can_scan(judge->tensors))
        st = fib_tensors_scan(judge->tensors, slot, t, mask, mask, &hits, err);
    if (st != FIB_OK || mask == 0 || hits.count == 0)
        return st;
    const void *const output = fib_tensors_host(judge->tensors, slot, t, err);
    if (!output)
        return err->status;
    fib_check_finite(judge->pool, tensor, output, verification);
    return FIB_OK;
}

static enum fib_status check_values(struct fib_judge *judge, const struct fib_judge_call *call,
                                    struct fib_verification *verification, struct fib_error *err)
{
    struct fib_problem problem = *judge->problem;
    if (call->accumulate_roundoff > problem.accumulate_roundoff)
        problem.accumulate_roundoff = call->accumulate_roundoff;
    for (int t = 0; t < problem.tensor_count; t++) {
        const struct fib_tensor *const tensor = &problem.tensors[t];
        if (!is_checked(tensor))
            continue;
        const void *const output = fib_tensors_host_rows(judge->tensors, call->slot, t, judge->rows,
                                                         judge->row_count, err);
        if (!output)
            return err->status;
        fib_check_rows(&problem, t, output, judge->rows, judge->row_count, judge->oracle.value[t],
                       judge->oracle.terms[t], verification);
        const bool all_rows = judge->row_count >= problem.row_count;
        const enum fib_status st =
            all_rows ? FIB_OK : check_rest(judge, call->slot, t, verification, err);
        if (st != FIB_OK)
            return st;
    }
    return FIB_OK;
}

/* May an output still hold poison after the first run? Where the device can scan, mostly not. */
static enum fib_status suspect_unwritten(struct fib_judge *judge, int t, bool *suspect,
                                         struct fib_error *err)
{
    const unsigned bits = 8 * (unsigned)fib_dtype_bytes(judge->problem->tensors[t].dtype);
    const uint64_t mask = UINT64_MAX >> (64 - bits);
    const uint64_t poison = UINT64_C(0x0101010101010101) * FIB_POISON_A & mask;
    struct fib_scan_hits hits = {.count = 1};
    enum fib_status st = FIB_OK;
    if (fib_tensors_can_scan(judge->tensors))
        st = fib_tensors_scan(judge->tensors, 0, t, mask, poison, &hits, err);
    *suspect = hits.count > 0;
    return st;
}

/* Host copy of an output that may have unwritten elements. */
static enum fib_status copy_suspect(struct fib_judge *judge, int t, void **copy,
                                    struct fib_error *err)
{
    const size_t bytes = fib_tensor_bytes(&judge->problem->tensors[t]);
    bool suspect = false;
    const enum fib_status st = suspect_unwritten(judge, t, &suspect, err);
    if (st != FIB_OK || !suspect)
        return st;
    const void *const host = fib_tensors_host(judge->tensors, 0, t, err);
    if (!host)
        return err->status;
    *copy = fib_zalloc(bytes > 0 ? bytes : 1);
    memcpy(*copy, host, bytes);
    return FIB_OK;
}

/* Host copies of outputs where the second run needs them, and a checksum over all that is written.
 */
static enum fib_status capture(struct fib_judge *judge, void **copies, uint64_t *checksum,
                               struct fib_error *err)
{
    uint64_t sum = 0;
    for (int t = 0; t < judge->problem->tensor_count; t++) {
        const struct fib_tensor *const tensor = &judge->problem->tensors[t];
        uint64_t one = 0;
        if (!fib_tensor_is_written(tensor))
            continue;
        enum fib_status st = fib_tensors_checksum(judge->tensors, 0, t, &one, err);
        sum = sum * 0x9e3779b97f4a7c15u + one;
        if (st == FIB_OK && tensor->role == FIB_OUTPUT)
            st = copy_suspect(judge, t, &copies[t], err);
        if (st != FIB_OK)
            return st;
    }
    *checksum = sum;
    return FIB_OK;
}

static enum fib_status check_written(struct fib_judge *judge, void *const *first,
                                     struct fib_verification *verification, struct fib_error *err)
{
    for (int t = 0; t < judge->problem->tensor_count; t++) {
        if (!first[t])
            continue;
        const void *const second = fib_tensors_host(judge->tensors, 0, t, err);
        if (!second)
            return err->status;
        fib_check_written(judge->pool, &judge->problem->tensors[t], first[t], FIB_POISON_A, second,
                          FIB_POISON_B, verification);
    }
    return FIB_OK;
}

enum fib_status fib_judge_full(struct fib_judge *judge, const struct fib_judge_call *call,
                               struct fib_verification *verification, uint64_t *output_checksum,
                               struct fib_error *err)
{
    void *first[FIB_MAX_TENSORS] = {0};
    enum fib_status st = call_once(judge, call, FIB_POISON_A, err);
    if (st == FIB_OK)
        st = fib_tensors_verify(judge->tensors, 0, verification, err);
    if (st == FIB_OK)
        st = capture(judge, first, output_checksum, err);
    if (st == FIB_OK)
        st = call_once(judge, call, FIB_POISON_B, err);
    if (st == FIB_OK)
        st = fib_tensors_verify(judge->tensors, 0, verification, err);
    if (st == FIB_OK)
        st = check_written(judge, first, verification, err);
    if (st == FIB_OK)
        st = check_values(judge, call, verification, err);
    for (int t = 0; t < FIB_MAX_TENSORS; t++)
        free(first[t]);
    return st;
}

enum fib_status fib_judge_again(struct fib_judge *judge, const struct fib_judge_call *call,
                                struct fib_verification *verification, struct fib_error *err)
{
    enum fib_status st = call_once(judge, call, FIB_POISON_A, err);
    if (st == FIB_OK)
        st = fib_tensors_verify(judge->tensors, call->slot, verification, err);
    if (st == FIB_OK)
        st = check_values(judge, call, verification, err);
    return st;
}
