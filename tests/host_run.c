/* A minimal stand-in for the runner: one case, one implementation, everything on the host. */
#include "tests/support.h"
#include "tests/host_run.h"

#include <stdlib.h>
#include <string.h>

#include "core/backend.h"
#include "core/device.h"
#include "core/fill.h"
#include "core/memory.h"
#include "core/pool.h"
#include "core/routine.h"

enum { ALIGN_BYTES = 256, OUTPUT_BYTE = 0xff, THREADS = 2 };

struct host_run {
    const struct fib_case *kase;
    struct fib_problem problem;
    struct fib_pool *pool;
    struct fib_device *device;
    void *data[FIB_MAX_TENSORS];
    void *before[FIB_MAX_TENSORS]; /* in-place tensors as the oracle saw them */
    double *value[FIB_MAX_TENSORS], *terms[FIB_MAX_TENSORS];
    bool has_oracle;
    char resolved[128];
};

static bool is_checked(const struct fib_tensor *tensor)
{
    return tensor->check != FIB_CHECK_NONE;
}

static void *alloc_tensor(const struct fib_tensor *tensor)
{
    const size_t rounded = (fib_tensor_bytes(tensor) / ALIGN_BYTES + 1) * ALIGN_BYTES;
    void *const data = aligned_alloc(ALIGN_BYTES, rounded);
    assert_non_null(data);
    memset(data, OUTPUT_BYTE, rounded);
    return data;
}

static void create_tensor(struct host_run *run, int t, uint32_t draw)
{
    const struct fib_tensor *const tensor = &run->problem.tensors[t];
    run->data[t] = alloc_tensor(tensor);
    if (tensor->role != FIB_OUTPUT) {
        const uint64_t seed = (uint64_t)run->kase->settings.random_seed;
        fib_fill_host(run->pool, &tensor->fill, tensor->dtype,
                      fib_fill_key(seed, tensor->name, draw), (size_t)fib_tensor_elems(tensor),
                      run->data[t]);
    }
    if (tensor->role == FIB_INOUT)
        run->before[t] = alloc_tensor(tensor);
    if (is_checked(tensor)) {
        const size_t count = (size_t)(run->problem.row_count * tensor->row_elems);
        assert_int_equal(count, fib_tensor_elems(tensor));
        run->value[t] = fib_zalloc_array(count, sizeof(double));
        run->terms[t] = fib_zalloc_array(count, sizeof(double));
    }
}

struct host_run *host_run_create(const struct fib_case *kase, uint32_t draw)
{
    struct host_run *const run = fib_zalloc(sizeof *run);
    struct fib_error err = {0};
    run->kase = kase;
    if (kase->routine->check && kase->routine->check(kase, &err) != FIB_OK)
        fail_msg("%s", err.text);
    kase->routine->describe(kase, &run->problem);
    run->pool = fib_pool_create(THREADS);
    if (fib_device_cpu_open(run->pool, &run->device, &err) != FIB_OK)
        fail_msg("%s", err.text);
    for (int t = 0; t < run->problem.tensor_count; t++)
        create_tensor(run, t, draw);
    return run;
}

void host_run_free(struct host_run *run)
{
    if (!run)
        return;
    for (int t = 0; t < run->problem.tensor_count; t++) {
        free(run->data[t]);
        free(run->before[t]);
        free(run->value[t]);
        free(run->terms[t]);
    }
    fib_device_close(&run->device);
    fib_pool_free(&run->pool);
    free(run);
}

const struct fib_problem *host_run_problem(const struct host_run *run)
{
    return &run->problem;
}

static int need_tensor(const struct host_run *run, const char *name)
{
    const int t = fib_problem_find(&run->problem, name);
    if (t < 0)
        fail_msg("no tensor \"%s\" in %s", name, run->kase->routine->name);
    return t;
}

void *host_run_data(struct host_run *run, const char *name)
{
    return run->data[need_tensor(run, name)];
}

void host_run_oracle(struct host_run *run)
{
    struct fib_oracle_inputs inputs = {{0}};
    struct fib_oracle_rows rows = {{0}, {0}};
    for (int t = 0; t < run->problem.tensor_count; t++) {
        const struct fib_tensor *const tensor = &run->problem.tensors[t];
        if (tensor->role != FIB_OUTPUT)
            inputs.data[t] = run->data[t];
        if (run->before[t])
            memcpy(run->before[t], run->data[t], fib_tensor_bytes(tensor));
        rows.value[t] = run->value[t];
        rows.terms[t] = run->terms[t];
    }
    run->kase->routine->reference(run->kase, &run->problem, &inputs, 0, run->problem.row_count,
                                  &rows);
    run->has_oracle = true;
}

const double *host_run_value(const struct host_run *run, const char *name)
{
    return run->has_oracle ? run->value[need_tensor(run, name)] : NULL;
}

const double *host_run_terms(const struct host_run *run, const char *name)
{
    return run->has_oracle ? run->terms[need_tensor(run, name)] : NULL;
}

void host_run_store_oracle(struct host_run *run)
{
    assert_true(run->has_oracle);
    for (int t = 0; t < run->problem.tensor_count; t++) {
        const struct fib_tensor *const tensor = &run->problem.tensors[t];
        if (!is_checked(tensor))
            continue;
        const size_t count = (size_t)fib_tensor_elems(tensor);
        for (size_t i = 0; i < count; i++)
            fib_dtype_store(tensor->dtype, run->data[t], i, run->value[t][i]);
    }
}

static void reset_written(struct host_run *run)
{
    for (int t = 0; t < run->problem.tensor_count; t++) {
        const struct fib_tensor *const tensor = &run->problem.tensors[t];
        if (tensor->role == FIB_OUTPUT)
            memset(run->data[t], OUTPUT_BYTE, fib_tensor_bytes(tensor));
        if (run->before[t])
            memcpy(run->data[t], run->before[t], fib_tensor_bytes(tensor));
    }
}

static enum fib_status prepare_and_run(struct host_run *run, const struct fib_impl *impl,
                                       struct fib_error *err)
{
    struct fib_prepare_args args = {
        .kase = run->kase, .problem = &run->problem, .device = run->device, .pool = run->pool};
    memcpy(args.data, run->data, sizeof args.data);
    struct fib_prepared *prepared = NULL;
    enum fib_status st = impl->prepare(&args, &prepared, err);
    if (st != FIB_OK)
        goto out;
    char buffer[sizeof run->resolved] = "";
    const char *const resolved = impl->resolved(prepared, buffer, sizeof buffer);
    strncpy(run->resolved, resolved, sizeof run->resolved - 1);
    st = impl->run(prepared, NULL, err);
out:
    impl->release(&prepared);
    assert_null(prepared);
    return st;
}

enum fib_status host_run_impl(struct host_run *run, const char *label, struct fib_error *err)
{
    const char *const name = run->kase->routine->name;
    const struct fib_impl *const impl =
        fib_registry_impl(test_registry(), name, label, FIB_DEVICE_CPU);
    if (!impl)
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "%s has no implementation labelled %s", name,
                        label);
    char buffer[256] = "";
    const char *const reason =
        impl->refuse ? impl->refuse(run->kase, &run->problem, run->device, buffer, sizeof buffer)
                     : NULL;
    if (reason)
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "%s", reason);
    if (!run->has_oracle)
        host_run_oracle(run);
    reset_written(run);
    return prepare_and_run(run, impl, err);
}

const char *host_run_resolved(const struct host_run *run)
{
    return run->resolved;
}

/* The scan for NaN and infinity is for outputs of which the oracle expects none. */
static bool expects_finite(const double *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(value[i] - value[i] == 0.0))
            return false;
    return true;
}

void host_run_check(struct host_run *run, struct fib_verification *verification)
{
    assert_true(run->has_oracle);
    const int64_t row_count = run->problem.row_count;
    int64_t *const rows = fib_zalloc_array((size_t)row_count + 1, sizeof *rows);
    for (int64_t r = 0; r < row_count; r++)
        rows[r] = r;
    for (int t = 0; t < run->problem.tensor_count; t++) {
        const struct fib_tensor *const tensor = &run->problem.tensors[t];
        if (!is_checked(tensor))
            continue;
        fib_check_rows(&run->problem, t, run->data[t], rows, row_count, run->value[t],
                       run->terms[t], verification);
        if (expects_finite(run->value[t], (size_t)fib_tensor_elems(tensor)))
            fib_check_finite(run->pool, tensor, run->data[t], verification);
    }
    free(rows);
}
