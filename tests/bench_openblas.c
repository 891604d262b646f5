/* What the openblas adapter adds to a bare loop: the same widening, sgemm and narrowing written
 * out here, timed in turns with the adapter's run. Prints medians and their ratio; the adapter is
 * meant to stay within 5 %. */
#include <stdio.h>

#if !__has_include(<cblas.h>)

int main(void)
{
    puts("built without OpenBLAS headers: nothing to compare");
    return 77;
}

#else

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support.h"

#include "backends/openblas_lib.h"
#include "core/backend.h"
#include "core/pool.h"
#include "core/routine.h"
#include "routines/gemm.h"

enum { ROUNDS = 15, ALIGN_BYTES = 256 };

/* Everything both sides work on. */
struct setup {
    struct fib_plan *plan;
    struct fib_problem problem;
    struct gemm_shape shape;
    struct fib_pool *pool;
    struct fib_device *device;
    struct fib_openblas lib;
    void *data[FIB_MAX_TENSORS];
    float *wide_a, *wide_b, *wide_out;
};

struct convert {
    enum fib_dtype dtype;
    char *narrow;
    float *wide;
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void to_wide(void *context, int64_t first, int64_t last)
{
    const struct convert *c = context;
    fib_dtype_to_f32(c->dtype, c->narrow + (size_t)first * fib_dtype_bytes(c->dtype),
                     c->wide + first, (size_t)(last - first));
}

static void from_wide(void *context, int64_t first, int64_t last)
{
    const struct convert *c = context;
    fib_dtype_from_f32(c->dtype, c->wide + first,
                       c->narrow + (size_t)first * fib_dtype_bytes(c->dtype),
                       (size_t)(last - first));
}

static struct convert entry_of(const struct setup *s, int tensor, int64_t entry, float *wide)
{
    const struct fib_tensor *t = &s->problem.tensors[tensor];
    const size_t entry_bytes = fib_tensor_bytes(t) / (size_t)s->shape.batch;
    return (struct convert){t->dtype, (char *)s->data[tensor] + (size_t)entry * entry_bytes, wide};
}

static void run_bare(const struct setup *s)
{
    const int m = (int)s->shape.m, n = (int)s->shape.n, k = (int)s->shape.k;
    float alpha = 1.0f;
    if (s->shape.scaled)
        alpha = *(float *)s->data[GEMM_A_SCALE] * *(float *)s->data[GEMM_B_SCALE];
    for (int64_t entry = 0; entry < s->shape.batch; entry++) {
        struct convert a = entry_of(s, GEMM_A, entry, s->wide_a);
        struct convert b = entry_of(s, GEMM_B, entry, s->wide_b);
        struct convert out = entry_of(s, GEMM_OUT, entry, s->wide_out);
        fib_pool_for(s->pool, (int64_t)m * k, 1 << 14, to_wide, &a);
        fib_pool_for(s->pool, (int64_t)n * k, 1 << 14, to_wide, &b);
        s->lib.sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, alpha, s->wide_a, k,
                     s->wide_b, k, 0.0f, s->wide_out, n);
        fib_pool_for(s->pool, (int64_t)m * n, 1 << 14, from_wide, &out);
    }
}

static void *take(size_t size_bytes)
{
    void *const address = aligned_alloc(ALIGN_BYTES, (size_bytes / ALIGN_BYTES + 1) * ALIGN_BYTES);
    if (!address)
        abort();
    memset(address, 0, size_bytes);
    return address;
}

static void set_up(struct setup *s, const char *line)
{
    struct fib_error err = {0};
    *s = (struct setup){.plan = test_plan(line)};
    const struct fib_case *kase = s->plan->items[0].kase;
    kase->routine->describe(kase, &s->problem);
    fib_gemm_shape(&s->problem, &s->shape);
    s->pool = fib_pool_create(0);
    if (fib_device_cpu_open(s->pool, &s->device, &err) != FIB_OK)
        fail_msg("%s", err.text);
    for (int t = 0; t < s->problem.tensor_count; t++) {
        const struct fib_tensor *tensor = &s->problem.tensors[t];
        s->data[t] = take(fib_tensor_bytes(tensor));
        if (tensor->role != FIB_OUTPUT)
            fib_fill_host(s->pool, &tensor->fill, tensor->dtype, fib_fill_key(1, tensor->name, 0),
                          (size_t)fib_tensor_elems(tensor), s->data[t]);
    }
    s->wide_a = take((size_t)(s->shape.m * s->shape.k) * sizeof(float));
    s->wide_b = take((size_t)(s->shape.n * s->shape.k) * sizeof(float));
    s->wide_out = take((size_t)(s->shape.m * s->shape.n) * sizeof(float));
}

static void tear_down(struct setup *s)
{
    for (int t = 0; t < s->problem.tensor_count; t++)
        free(s->data[t]);
    free(s->wide_a);
    free(s->wide_b);
    free(s->wide_out);
    fib_openblas_close(&s->lib);
    fib_device_close(&s->device);
    fib_pool_free(&s->pool);
    fib_plan_free(&s->plan);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *samples)
{
    qsort(samples, ROUNDS, sizeof(*samples), ascending);
    return samples[ROUNDS / 2];
}

/* In turns, the order swapped each round, so that drift hits both alike. */
static void time_both(const struct setup *s, const struct fib_impl *impl,
                      struct fib_prepared *prepared, const char *line)
{
    double adapter_ms[ROUNDS], bare_ms[ROUNDS];
    for (int i = -2; i < ROUNDS; i++) {
        double start_ms[3];
        const bool bare_first = i % 2 != 0;
        start_ms[0] = now_ms();
        if (bare_first)
            run_bare(s);
        else
            impl->run(prepared, NULL, NULL);
        start_ms[1] = now_ms();
        if (bare_first)
            impl->run(prepared, NULL, NULL);
        else
            run_bare(s);
        start_ms[2] = now_ms();
        if (i < 0)
            continue;
        adapter_ms[i] = bare_first ? start_ms[2] - start_ms[1] : start_ms[1] - start_ms[0];
        bare_ms[i] = bare_first ? start_ms[1] - start_ms[0] : start_ms[2] - start_ms[1];
    }
    const double adapter = median(adapter_ms), bare = median(bare_ms);
    printf("%-60s adapter %8.3f ms  bare %8.3f ms  ratio %.3f\n", line, adapter, bare,
           adapter / bare);
}

static int compare(const char *line)
{
    struct setup s;
    struct fib_error err = {0};
    struct fib_prepared *prepared = NULL;
    int status = 0;
    set_up(&s, line);
    const struct fib_case *kase = s.plan->items[0].kase;
    const struct fib_impl *impl =
        fib_registry_impl(test_registry(), kase->routine->name, "openblas", FIB_DEVICE_CPU);
    struct fib_prepare_args args = {
        .kase = kase, .problem = &s.problem, .device = s.device, .pool = s.pool};
    memcpy(args.data, s.data, sizeof(args.data));
    if (!impl || impl->prepare(&args, &prepared, &err) != FIB_OK ||
        fib_openblas_open(&s.lib, &err) != FIB_OK) {
        printf("nothing to compare: %s\n", impl ? err.text : "no openblas adapter");
        status = 77;
        goto out;
    }
    time_both(&s, impl, prepared, line);
out:
    if (impl)
        impl->release(&prepared);
    tear_down(&s);
    return status;
}

int main(void)
{
    static const char *const lines[] = {
        "--routine mm_bf16 --m 64 --n 4096 --k 4096",
        "--routine mm_bf16 --m 1 --n 4096 --k 4096",
        "--routine bmm_bf16 --batch_size 8 --m 128 --n 512 --k 512",
        "--routine bmm_fp8 --batch_size 8 --m 4 --n 1024 --k 7168",
    };
    int status = 0;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && status == 0; i++)
        status = compare(lines[i]);
    return status;
}

#endif
