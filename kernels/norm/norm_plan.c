/* Which norm kernel runs: the choice by shape, variants by name, and the way to the launcher. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/norm.h"
#include "kernels/norm/forms.h"

/* What is built: launch.cuh has the same list. `most_threads` bounds a block of BLOCK and CLUSTER
 * and gives the size of one of WARP. Forms that add or shift keep float32 and have no V = 8. */
struct variant {
    const char *name;
    enum fib_norm_kind kind;
    int vectors, unroll;
    bool early, packed_only;
    int most_threads, most_threads_layer;
};

static const struct variant variants[] = {
    {"warp_v1", FIB_NORM_WARP, 1, 1, true, false, 128, 128},
    {"warp_v1u4", FIB_NORM_WARP, 1, 4, true, false, 128, 128},
    {"warp_v2", FIB_NORM_WARP, 2, 1, true, false, 128, 128},
    {"warp_v2u2", FIB_NORM_WARP, 2, 2, true, false, 128, 128},
    {"warp_v4", FIB_NORM_WARP, 4, 1, true, false, 128, 128},
    {"warp_v8", FIB_NORM_WARP, 8, 1, true, true, 128, 128},
    {"block_v1", FIB_NORM_BLOCK, 1, 1, true, false, 1024, 512},
    {"block_v2", FIB_NORM_BLOCK, 2, 1, false, false, 512, 512},
    {"block_v2early", FIB_NORM_BLOCK, 2, 1, true, false, 1024, 512},
    {"block_v4", FIB_NORM_BLOCK, 4, 1, false, false, 512, 512},
    {"block_v4early", FIB_NORM_BLOCK, 4, 1, true, false, 512, 512},
    {"block_v8", FIB_NORM_BLOCK, 8, 1, false, true, 256, 256},
    {"block_v4u2", FIB_NORM_BLOCK, 4, 2, false, false, 512, 512},
    {"cluster_v1", FIB_NORM_CLUSTER, 1, 1, true, false, 512, 512},
    {"cluster_v2", FIB_NORM_CLUSTER, 2, 1, true, false, 512, 512},
    {"cluster_v4", FIB_NORM_CLUSTER, 4, 1, false, false, 512, 512},
    {"cluster_v8", FIB_NORM_CLUSTER, 8, 1, false, true, 512, 512},
    {"stream_v1", FIB_NORM_STREAM, 1, 1, true, false, 1024, 1024},
    {"stream_v2", FIB_NORM_STREAM, 2, 1, true, false, 1024, 512},
    {"stream_v4", FIB_NORM_STREAM, 4, 1, true, false, 512, 512},
    {"loop", FIB_NORM_LOOP, 1, 1, false, false, 1024, 1024},
    {"scalar", FIB_NORM_SCALAR, 1, 1, false, false, 1024, 1024},
};
enum {
    VARIANT_COUNT = sizeof variants / sizeof variants[0],
    LANES = 32,
    MOST_BLOCKS = 16,
    MOST_GROUPS = 4,
    MOST_STAGES = 16,
    FEWEST_STAGES = 2
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a - 1) / b + 1;
}

static int64_t round_up(int64_t a, int64_t to)
{
    return ceil_div(a, to) * to;
}

static int64_t clamp(int64_t a, int64_t low, int64_t high)
{
    return a < low ? low : a > high ? high : a;
}

static int64_t pow2_at_least(int64_t a)
{
    int64_t p = 1;
    while (p < a)
        p *= 2;
    return p;
}

static int vector_elements(const struct fib_norm_args *args)
{
    return args->in_type == FIB_NORM_F32 ? 4 : 8;
}

static bool is_aligned(const void *address, size_t bytes)
{
    return (uintptr_t)address % bytes == 0;
}

/* Whole vectors on addresses that vector loads and stores accept. */
static bool takes_vectors(const struct fib_norm_args *args)
{
    const bool fp8 = args->out_type == FIB_NORM_E4M3 || args->out_type == FIB_NORM_E5M2;
    return args->cols % vector_elements(args) == 0 && is_aligned(args->x, 16) &&
           is_aligned(args->residual, 16) && is_aligned(args->weight, 16) &&
           is_aligned(args->beta, 16) && is_aligned(args->out, fp8 ? 8 : 16);
}

static int most_threads(const struct fib_norm_args *args, const struct variant *v)
{
    return args->layer ? v->most_threads_layer : v->most_threads;
}

static struct fib_norm_plan make_plan(const struct variant *v, int64_t threads, int64_t lanes,
                                      int64_t blocks)
{
    return (struct fib_norm_plan){.kind = v->kind,
                                  .vectors = v->vectors,
                                  .unroll = v->unroll,
                                  .threads = (int)threads,
                                  .lanes = (int)lanes,
                                  .blocks = (int)blocks,
                                  .groups = 1,
                                  .early = v->early};
}

size_t fib_norm_stage_bytes(const struct fib_norm_args *args)
{
    const int64_t row_bytes = args->cols / vector_elements(args) * 16;
    return (size_t)round_up(row_bytes * (args->adds ? 2 : 1), 128);
}

/* STREAM: `threads` a group, 0 for as many as the row needs. The copy engine takes multiples of 16
 * bytes, so a row of FP8 results has an even number of vectors. */
static bool shape_stream(const struct fib_norm_args *args, const struct variant *v, int64_t threads,
                         int64_t groups, struct fib_norm_plan *plan)
{
    const int64_t vecs = args->cols / vector_elements(args), needed = ceil_div(vecs, v->vectors);
    const int64_t most = most_threads(args, v);
    const bool fp8 = args->out_type == FIB_NORM_E4M3 || args->out_type == FIB_NORM_E5M2;
    if (!threads)
        threads = round_up(needed, LANES);
    if (!groups)
        groups = clamp(most / threads, 1, 2);
    *plan = make_plan(v, threads * groups, LANES, 1);
    plan->groups = (int)groups;
    const int64_t stages = FIB_NORM_RING_BYTES / (groups * (int64_t)fib_norm_stage_bytes(args));
    plan->stages = (int)(stages < MOST_STAGES ? stages : MOST_STAGES);
    if (getenv("FIB_STAGES") && atoi(getenv("FIB_STAGES")) < plan->stages)
        plan->stages = atoi(getenv("FIB_STAGES"));
    return stages >= FEWEST_STAGES && groups <= MOST_GROUPS && threads % LANES == 0 &&
           threads >= needed && threads * groups <= most &&
           !(fp8 && (args->cols % 16 != 0 || !is_aligned(args->out, 16)));
}

/* Launch shape of a variant with `threads` per block or lanes per row and `blocks` per row; 0
 * leaves either to the row. False when the row does not fit. */
static bool shape(const struct fib_norm_args *args, const struct variant *v, int64_t threads,
                  int64_t blocks, struct fib_norm_plan *plan)
{
    const int64_t most = most_threads(args, v);
    if (v->packed_only && (args->adds || args->layer))
        return false;
    if (v->kind == FIB_NORM_SCALAR || v->kind == FIB_NORM_LOOP) {
        if (v->kind == FIB_NORM_LOOP && !takes_vectors(args))
            return false;
        const int64_t units =
            v->kind == FIB_NORM_LOOP ? args->cols / vector_elements(args) : ceil_div(args->cols, 4);
        const int64_t fit = clamp(round_up(units, LANES), LANES, most);
        *plan = make_plan(v, threads ? threads : fit, LANES, 1);
        return plan->threads % LANES == 0 && plan->threads <= most;
    }
    if (!takes_vectors(args))
        return false;
    const int64_t vecs = args->cols / vector_elements(args);
    const int64_t needed = ceil_div(vecs, v->vectors); /* threads */
    if (v->kind == FIB_NORM_WARP) {
        const int64_t fit = v->vectors > 1 ? LANES : pow2_at_least(needed);
        const int64_t lanes = threads ? threads : fit;
        *plan = make_plan(v, most, lanes, 1);
        return lanes >= fit && lanes >= needed && lanes <= LANES && pow2_at_least(lanes) == lanes;
    }
    if (v->kind == FIB_NORM_STREAM)
        return shape_stream(args, v, threads, blocks, plan);
    const bool cluster = v->kind == FIB_NORM_CLUSTER;
    if (!blocks)
        blocks = cluster ? clamp(pow2_at_least(ceil_div(needed, most)), 2, MOST_BLOCKS) : 1;
    if (blocks > MOST_BLOCKS || pow2_at_least(blocks) != blocks ||
        (cluster ? blocks < 2 : blocks != 1))
        return false;
    if (!threads)
        threads = round_up(ceil_div(needed, blocks), LANES);
    *plan = make_plan(v, threads, LANES, blocks);
    return threads % LANES == 0 && threads <= most && threads * blocks >= needed;
}

static const struct variant *variant_by_name(const char *name)
{
    for (int i = 0; i < VARIANT_COUNT; i++)
        if (strcmp(variants[i].name, name) == 0)
            return &variants[i];
    return NULL;
}

static bool try_name(const struct fib_norm_args *args, const char *name, int64_t threads,
                     int64_t blocks, struct fib_norm_plan *plan)
{
    return shape(args, variant_by_name(name), threads, blocks, plan);
}

/* Rows of at most 64 vectors. */
static bool choose_short(const struct fib_norm_args *args, int unit_count,
                         struct fib_norm_plan *plan)
{
    const int64_t vecs = args->cols / vector_elements(args);
    if (vecs <= LANES)
        return try_name(args, "warp_v1", 0, 0, plan);
    if ((args->adds || args->layer) && args->rows <= 8 * (int64_t)unit_count &&
        try_name(args, "block_v1", 0, 0, plan))
        return true;
    return try_name(args, "warp_v2", 0, 0, plan);
}

/* At most a row for each multiprocessor: the shortest chain of latencies. */
static bool choose_few(const struct fib_norm_args *args, struct fib_norm_plan *plan)
{
    const int64_t vecs = args->cols / vector_elements(args);
    if (vecs >= 512 && !args->layer && try_name(args, "block_v2early", 0, 0, plan))
        return true;
    return try_name(args, "block_v1", 0, 0, plan) || try_name(args, "block_v2early", 0, 0, plan);
}

/* Rows that fill the device several times: bytes in flight. Weights loaded with the row pay while
 * registers allow, which depends on the form; each border stands where two variants crossed on an
 * H200 (docs/kernels/norm.md). */
static const char *choose_many(const struct fib_norm_args *args)
{
    const int64_t vecs = args->cols / vector_elements(args);
    const bool fp8 = args->out_type == FIB_NORM_E4M3 || args->out_type == FIB_NORM_E5M2;
    const bool plain = !args->adds && !args->layer;
    if (args->layer) /* its weights are four times as long as a row: two rows share them */
        return "block_v4u2";
    if (vecs <= 256 && plain && vecs > 192)
        return fp8 ? "block_v4u2" : "block_v2early";
    if (vecs <= 256)
        return "block_v2";
    if (vecs > 2048)
        return "block_v8";
    if (args->adds)
        return vecs <= 1024 && (fp8 ? vecs >= 512 : vecs > 512) ? "block_v2early" : "block_v4";
    if (vecs <= 1024)
        return "block_v4early";
    return fp8 ? "block_v4" : "block_v8";
}

/* Rows in the registers of one block. */
static bool choose_block(const struct fib_norm_args *args, int unit_count,
                         struct fib_norm_plan *plan)
{
    const int64_t vecs = args->cols / vector_elements(args);
    const bool few = args->rows <= unit_count, some = args->rows <= 4 * (int64_t)unit_count;
    if (few && choose_few(args, plan))
        return true;
    if (some && try_name(args, vecs <= 1024 ? "block_v2early" : "block_v4early", 0, 0, plan))
        return true;
    if (vecs <= 128 && try_name(args, "warp_v4", 0, 0, plan))
        return true;
    return try_name(args, choose_many(args), 0, 0, plan) || try_name(args, "block_v4", 0, 0, plan);
}

static bool choose_cluster(const struct fib_norm_args *args, int unit_count,
                           struct fib_norm_plan *plan)
{
    const int64_t vecs = args->cols / vector_elements(args);
    /* Spread few rows over all multiprocessors as far as clusters go. */
    const int64_t spread = pow2_at_least(ceil_div(unit_count, args->rows) + 1) / 2;
    const int64_t small = clamp(pow2_at_least(ceil_div(vecs, 256)), 2, MOST_BLOCKS);
    if (spread >= small && try_name(args, "cluster_v1", 0, small, plan))
        return true;
    const int64_t needed = clamp(pow2_at_least(ceil_div(vecs, 2048)), 2, MOST_BLOCKS);
    if (try_name(args, "cluster_v4", 0, clamp(spread, needed, 8), plan))
        return true;
    return try_name(args, "cluster_v4", 0, needed, plan) ||
           try_name(args, "cluster_v8", 0, 0, plan);
}

void fib_norm_choose(const struct fib_norm_args *args, int unit_count, struct fib_norm_plan *plan)
{
    if (!takes_vectors(args)) {
        (void)try_name(args, "scalar", 0, 0, plan);
        return;
    }
    const int64_t vecs = args->cols / vector_elements(args);
    const bool few_long = vecs > 1024 && args->rows * 8 <= unit_count;
    if (vecs <= 2 * LANES && choose_short(args, unit_count, plan))
        return;
    if (!few_long && choose_block(args, unit_count, plan))
        return;
    if (choose_cluster(args, unit_count, plan))
        return;
    (void)try_name(args, "loop", 0, 0, plan);
}

/* "block256_v4": the table's name "block_v4", blocks 0, threads 256; "cluster8x256_v4": 8 and 256;
 * "cluster8_v4": 8 blocks. */
static bool split_name(const char *name, char *base, size_t base_bytes, int64_t *blocks,
                       int64_t *threads)
{
    const size_t letters = strcspn(name, "0123456789_");
    const bool cluster =
        strncmp(name, "cluster", letters) == 0 || strncmp(name, "stream", letters) == 0;
    const char *rest = name + letters;
    char *end = NULL;
    *blocks = *threads = 0;
    if (isdigit((unsigned char)*rest)) {
        const int64_t number = strtoll(rest, &end, 10);
        rest = end;
        *(cluster ? blocks : threads) = number;
        if (cluster && rest[0] == 'x' && isdigit((unsigned char)rest[1])) {
            *threads = strtoll(rest + 1, &end, 10);
            rest = end;
        }
        if (number < 1 || number > 1024 || (cluster && (*threads < 0 || *threads > 1024)))
            return false;
    }
    return snprintf(base, base_bytes, "%.*s%s", (int)letters, name, rest) < (int)base_bytes;
}

static void list_variants(char *text, size_t text_bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < VARIANT_COUNT && used < text_bytes; i++)
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", i ? " " : "",
                                 variants[i].name);
}

bool fib_norm_find(const struct fib_norm_args *args, const char *name, struct fib_norm_plan *plan,
                   char *reason, size_t reason_bytes)
{
    char base[32], list[256];
    int64_t blocks = 0, threads = 0;
    const bool split = split_name(name, base, sizeof base, &blocks, &threads);
    const struct variant *const v = split ? variant_by_name(base) : NULL;
    if (!v) {
        list_variants(list, sizeof list);
        snprintf(reason, reason_bytes, "there is no norm variant \"%s\"; built are %s", name, list);
        return false;
    }
    if (shape(args, v, threads, blocks, plan))
        return true;
    snprintf(reason, reason_bytes,
             "norm variant %s cannot hold a row of %lld elements of this form; without --variant "
             "one that can is chosen",
             name, (long long)args->cols);
    return false;
}

void fib_norm_plan_name(const struct fib_norm_plan *plan, char *name, size_t name_bytes)
{
    const char *const early =
        plan->early && plan->kind == FIB_NORM_BLOCK && plan->vectors > 1 ? "early" : "";
    switch (plan->kind) {
    case FIB_NORM_WARP:
        if (plan->unroll > 1)
            snprintf(name, name_bytes, "warp%d_v%du%d", plan->lanes, plan->vectors, plan->unroll);
        else
            snprintf(name, name_bytes, "warp%d_v%d", plan->lanes, plan->vectors);
        break;
    case FIB_NORM_BLOCK:
        if (plan->unroll > 1)
            snprintf(name, name_bytes, "block%d_v%du%d", plan->threads, plan->vectors,
                     plan->unroll);
        else
            snprintf(name, name_bytes, "block%d_v%d%s", plan->threads, plan->vectors, early);
        break;
    case FIB_NORM_CLUSTER:
        snprintf(name, name_bytes, "cluster%dx%d_v%d", plan->blocks, plan->threads, plan->vectors);
        break;
    case FIB_NORM_STREAM:
        snprintf(name, name_bytes, "stream%dx%d_v%d", plan->groups, plan->threads / plan->groups,
                 plan->vectors);
        break;
    case FIB_NORM_LOOP:
        snprintf(name, name_bytes, "loop%d", plan->threads);
        break;
    case FIB_NORM_SCALAR:
        snprintf(name, name_bytes, "scalar%d", plan->threads);
        break;
    }
}

static fib_norm_form_fn *form_of(const struct fib_norm_args *args)
{
    const bool fp8 = args->out_type == FIB_NORM_E4M3 || args->out_type == FIB_NORM_E5M2;
    if (args->layer)
        return fib_norm_layer_bf16_fp8;
    if (args->in_type == FIB_NORM_F32)
        return fib_norm_rms_f32;
    if (args->in_type == FIB_NORM_F16)
        return fp8 ? fib_norm_rms_f16_fp8 : fib_norm_rms_f16;
    return fp8 ? fib_norm_rms_bf16_fp8 : fib_norm_rms_bf16;
}

int fib_norm_load(const struct fib_norm_args *args, const struct fib_norm_plan *plan)
{
    return form_of(args)(args, plan, NULL, true);
}

int fib_norm_launch(const struct fib_norm_args *args, const struct fib_norm_plan *plan,
                    struct CUstream_st *stream)
{
    return form_of(args)(args, plan, stream, false);
}
