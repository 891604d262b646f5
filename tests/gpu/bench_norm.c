/* Compares the variants of the norm kernels on a device, with nothing but the kernels and the CUDA
 * runtime: a graph of N calls over a ring of cold slots, variants of a shape in rounds, median.
 *
 *   nvcc -std=c++17 -O3 -gencode=arch=compute_90a,code=sm_90a -I. -o bench_norm
 *        tests/gpu/bench_norm.c kernels/norm/norm_plan.c kernels/norm/[a-z]*.cu
 *   ./bench_norm [PART OF A FORM, e.g. add] [ROWSxCOLS] [VARIANT...]
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "core/stats.h"
#include "kernels/norm.h"

enum {
    PATTERN_ELEMENTS = 1 << 25,
    MAX_NODES = 8192,
    MAX_VARIANTS = 16,
    ROUNDS = 9,
    ALIGN_BYTES = 256,
    CHECKED_ROWS = 4
};
static const size_t arena_bytes = (size_t)4600 << 20;
static const double ring_bytes = 200e6, least_window_us = 2000.0, window_overhead_us = 2.7;

struct form {
    const char *name;
    bool residual, layer;
    enum fib_norm_type in_type, out_type;
};

static const struct form forms[] = {
    {"rmsnorm", false, false, FIB_NORM_BF16, FIB_NORM_BF16},
    {"add_rmsnorm", true, false, FIB_NORM_BF16, FIB_NORM_BF16},
    {"rmsnorm_quant", false, false, FIB_NORM_BF16, FIB_NORM_E4M3},
    {"add_rmsnorm_quant", true, false, FIB_NORM_BF16, FIB_NORM_E4M3},
    {"layernorm_quant", false, true, FIB_NORM_BF16, FIB_NORM_E4M3},
    {"rmsnorm_f16", false, false, FIB_NORM_F16, FIB_NORM_F16},
};

struct shape {
    const char *form;
    int64_t rows, cols;
    const char *variants; /* "auto" is the built-in choice, "+pdl" asks for dependent launch */
};

#define ROW_LONG "auto block_v1 block_v2 block_v2early block_v4 block_v4early block_v8"
#define ROW_FEW "auto auto+pdl block_v1 block_v2early block_v4early cluster4_v1 loop"
#define ROW_SHORT "auto warp_v1 warp_v1u4 warp_v2 warp_v2u2 warp_v4 warp_v8 block_v1 block_v2"

static const struct shape shapes[] = {
    {"rmsnorm", 16384, 8192, ROW_LONG " loop"},
    {"rmsnorm", 4096, 8192, ROW_LONG},
    {"rmsnorm", 16384, 4096, ROW_LONG " warp_v8"},
    {"rmsnorm", 4096, 4096, ROW_LONG},
    {"rmsnorm", 4096, 7168, ROW_LONG},
    {"rmsnorm", 4096, 2560, ROW_LONG " warp_v8"},
    {"rmsnorm", 1024, 4096, ROW_LONG " auto+pdl"},
    {"rmsnorm", 1024, 8192, ROW_LONG},
    {"rmsnorm", 128, 4096, ROW_LONG " auto+pdl"},
    {"rmsnorm", 128, 8192, ROW_LONG},
    {"rmsnorm", 32, 4096, ROW_FEW},
    {"rmsnorm", 1, 4096, ROW_FEW},
    {"rmsnorm", 1, 8192, ROW_FEW},
    {"rmsnorm", 1, 16384, ROW_FEW " cluster4_v2 cluster8_v1"},
    {"rmsnorm", 128, 16384, "auto block_v2early block_v4 block_v4early block_v8 cluster2_v2"},
    {"rmsnorm", 1024, 16384, "auto block_v2 block_v4 block_v4early block_v8 cluster2_v4"},
    {"rmsnorm", 16384, 16384, "auto block_v2 block_v4 block_v8 cluster2_v4 cluster2_v8"},
    {"rmsnorm", 4096, 65536, "auto cluster4_v4 cluster8_v4 cluster8_v2 cluster4_v8 loop"},
    {"rmsnorm", 4, 65536, "auto cluster16_v1 cluster16_v2 cluster8_v4 loop"},
    {"rmsnorm", 1, 2048, "auto block_v1 block_v2early warp_v8"},
    {"rmsnorm", 16384, 2048, ROW_LONG " warp_v8 warp_v4"},
    {"rmsnorm", 1024, 2048, ROW_LONG " warp_v8"},
    {"rmsnorm", 16384, 1536, ROW_SHORT " block_v4"},
    {"rmsnorm", 16384, 512, ROW_SHORT},
    {"rmsnorm", 1024, 512, ROW_SHORT},
    {"rmsnorm", 1, 512, "auto warp_v2 block_v1"},
    {"rmsnorm", 1048576, 128, ROW_SHORT},
    {"rmsnorm", 131072, 128, ROW_SHORT},
    {"rmsnorm", 8192, 128, ROW_SHORT},
    {"rmsnorm", 8, 128, "auto warp_v1 warp_v1u4"},
    {"rmsnorm", 4096, 1000, ROW_SHORT},
    {"rmsnorm", 4096, 1001, "auto"},
    {"rmsnorm_f16", 4096, 4096, ROW_LONG},
    {"add_rmsnorm", 16384, 8192, "auto block_v1 block_v2 block_v2early block_v4 loop"},
    {"add_rmsnorm", 4096, 8192, "auto block_v1 block_v2 block_v2early block_v4"},
    {"add_rmsnorm", 4096, 4096, "auto block_v1 block_v2 block_v2early block_v4 block_v4early"},
    {"add_rmsnorm", 1024, 4096, "auto block_v1 block_v2 block_v2early block_v4 block_v4early"},
    {"add_rmsnorm", 128, 8192, "auto block_v1 block_v2 block_v2early block_v4 block_v4early"},
    {"add_rmsnorm", 32, 4096, ROW_FEW},
    {"add_rmsnorm", 1, 4096, ROW_FEW},
    {"add_rmsnorm", 1, 8192, ROW_FEW},
    {"add_rmsnorm", 1, 16384, ROW_FEW " cluster4_v2 cluster8_v1"},
    {"add_rmsnorm", 16384, 16384, "auto block_v2 block_v4 cluster2_v4 cluster2_v2"},
    {"add_rmsnorm", 16384, 2048, "auto block_v1 block_v2 block_v4 warp_v4"},
    {"rmsnorm_quant", 16384, 8192, ROW_LONG},
    {"rmsnorm_quant", 4096, 4096, ROW_LONG},
    {"rmsnorm_quant", 1, 4096, ROW_FEW},
    {"add_rmsnorm_quant", 16384, 8192, "auto block_v1 block_v2 block_v2early block_v4"},
    {"add_rmsnorm_quant", 4096, 4096, "auto block_v1 block_v2 block_v2early block_v4"},
    {"layernorm_quant", 16384, 8192, "auto block_v2 block_v2early block_v4 block_v4early loop"},
    {"layernorm_quant", 4096, 4096, "auto block_v1 block_v2 block_v2early block_v4"},
    {"layernorm_quant", 1, 4096, ROW_FEW},
};

/* Byte offsets inside a slot. */
struct layout {
    size_t x, residual, weight, beta, out, slot_bytes;
};

struct bench {
    unsigned char *arena;
    float *scale;
    uint16_t *pattern; /* random bf16 on the device */
    cudaStream_t stream;
    cudaEvent_t start, stop;
    int unit_count;
};

struct entry {
    char name[48];
    struct fib_norm_args args;
    struct fib_norm_plan plan;
    cudaGraphExec_t graph;
    double times[ROUNDS];
    double worst; /* error in units of what is allowed */
};

static void need(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

static size_t type_bytes(enum fib_norm_type type)
{
    return type == FIB_NORM_F32 ? 4 : type == FIB_NORM_BF16 || type == FIB_NORM_F16 ? 2 : 1;
}

static size_t take(size_t *at, size_t bytes)
{
    const size_t here = *at;
    *at += (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    return here;
}

static struct layout lay_out(const struct form *form, const struct shape *shape)
{
    const size_t count = (size_t)(shape->rows * shape->cols), cols = (size_t)shape->cols;
    struct layout l = {0};
    size_t at = 0;
    l.x = take(&at, count * type_bytes(form->in_type));
    l.residual = form->residual ? take(&at, count * type_bytes(form->in_type)) : 0;
    l.weight = take(&at, cols * (form->layer ? 4 : type_bytes(form->in_type)));
    l.beta = form->layer ? take(&at, cols * 4) : 0;
    l.out = form->residual && form->in_type == form->out_type
                ? l.x
                : take(&at, count * type_bytes(form->out_type));
    l.slot_bytes = at;
    return l;
}

static struct fib_norm_args slot_args(const struct bench *b, const struct form *form,
                                      const struct shape *shape, const struct layout *l,
                                      size_t slot)
{
    unsigned char *const base = b->arena + slot * l->slot_bytes;
    return (struct fib_norm_args){
        .x = base + l->x,
        .residual = form->residual ? base + l->residual : NULL,
        .weight = base + l->weight,
        .beta = form->layer ? (const float *)(const void *)(base + l->beta) : NULL,
        .scale = form->out_type >= FIB_NORM_E4M3 ? b->scale : NULL,
        .out = base + l->out,
        .rows = shape->rows,
        .cols = shape->cols,
        .eps = 1e-6f,
        .in_type = form->in_type,
        .out_type = form->out_type,
        .adds = form->residual,
        .layer = form->layer,
    };
}

static double moved_bytes(const struct form *form, const struct shape *shape)
{
    const double in = (double)type_bytes(form->in_type), out = (double)type_bytes(form->out_type);
    const double count = (double)shape->rows * (double)shape->cols;
    return count * ((form->residual ? 3.0 : 1.0) * in + out) +
           (double)shape->cols * (form->layer ? 8.0 : in);
}

static void fill(const struct bench *b, size_t bytes)
{
    const size_t pattern_bytes = (size_t)PATTERN_ELEMENTS * 2;
    for (size_t at = 0; at < bytes; at += pattern_bytes)
        need(cudaMemcpyAsync(b->arena + at, b->pattern,
                             bytes - at < pattern_bytes ? bytes - at : pattern_bytes,
                             cudaMemcpyDeviceToDevice, b->stream),
             "fill");
}

static double from_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &wide, sizeof f);
    return (double)f;
}

static double from_e4m3(uint8_t code)
{
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    const double magnitude =
        exponent == 0 ? ldexp(mantissa, -9) : ldexp(8 + mantissa, exponent - 10);
    return code & 0x80 ? -magnitude : magnitude;
}

static void *download(const void *from, size_t bytes)
{
    void *const to = malloc(bytes);
    if (!to)
        exit(1);
    need(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "download");
    return to;
}

/* Largest distance of a result from float64, in units of one rounding (e4m3: one step), of one row
 * of h = x (+ residual). */
static double row_error(const struct form *form, const double *h, const void *weight,
                        const float *beta, const void *out, int64_t cols)
{
    double mean = 0.0, square = 0.0, worst = 0.0;
    for (int64_t i = 0; form->layer && i < cols; i++)
        mean += h[i] / (double)cols;
    for (int64_t i = 0; i < cols; i++)
        square += (h[i] - mean) * (h[i] - mean) / (double)cols;
    const double root = sqrt(square + 1e-6);
    for (int64_t i = 0; i < cols; i++) {
        const double w = form->layer ? (double)((const float *)weight)[i]
                                     : from_bf16(((const uint16_t *)weight)[i]);
        const double want = (h[i] - mean) / root * w + (form->layer ? (double)beta[i] : 0.0);
        const bool codes = form->out_type == FIB_NORM_E4M3;
        const double got =
            codes ? from_e4m3(((const uint8_t *)out)[i]) : from_bf16(((const uint16_t *)out)[i]);
        const double steps = form->layer ? 1.2 : 1.0; /* it rounds three times */
        const double unit =
            codes ? fmax(0x1p-4 * fabs(want), 0x1p-10) * steps : 0x1p-8 * fabs(want);
        const double error = fabs(got - want) / (unit + 1e-6);
        if (!(error <= worst))
            worst = error;
    }
    return worst;
}

/* One call on fresh data in slot 0; some rows compared. Only for bf16 input. */
static double check(const struct bench *b, const struct form *form, const struct entry *e,
                    const struct layout *l)
{
    const int64_t rows = e->args.rows, cols = e->args.cols;
    const int64_t picked[CHECKED_ROWS] = {0, rows > 1 ? 1 : 0, rows / 2, rows - 1};
    const size_t row_bytes = (size_t)cols * 2,
                 out_bytes = (size_t)cols * type_bytes(form->out_type);
    double worst = 0.0;
    if (form->in_type != FIB_NORM_BF16)
        return 0.0;
    fill(b, l->slot_bytes);
    void *const weight = download(e->args.weight, (size_t)cols * (form->layer ? 4 : 2));
    float *const beta = form->layer ? download(e->args.beta, (size_t)cols * 4) : NULL;
    double *const h = malloc(CHECKED_ROWS * (size_t)cols * sizeof *h);
    for (int k = 0; k < CHECKED_ROWS; k++) {
        const size_t at = (size_t)picked[k] * row_bytes;
        uint16_t *const x = download((const char *)e->args.x + at, row_bytes);
        uint16_t *const r =
            form->residual ? download((char *)e->args.residual + at, row_bytes) : NULL;
        for (int64_t i = 0; i < cols; i++)
            h[k * cols + i] = from_bf16(x[i]) + (r ? from_bf16(r[i]) : 0.0);
        free(x);
        free(r);
    }
    need((cudaError_t)fib_norm_launch(&e->args, &e->plan, b->stream), e->name);
    need(cudaStreamSynchronize(b->stream), e->name);
    for (int k = 0; k < CHECKED_ROWS; k++) {
        void *const out = download((char *)e->args.out + (size_t)picked[k] * out_bytes, out_bytes);
        const double error = row_error(form, h + k * cols, weight, beta, out, cols);
        if (!(error <= worst))
            worst = error;
        if (form->residual) {
            uint16_t *const r =
                download((char *)e->args.residual + (size_t)picked[k] * row_bytes, row_bytes);
            for (int64_t i = 0; i < cols; i++) {
                const double off = fabs(from_bf16(r[i]) - h[k * cols + i]) /
                                   (0x1p-8 * fabs(h[k * cols + i]) + 1e-30);
                if (!(off <= worst))
                    worst = off;
            }
            free(r);
        }
        free(out);
    }
    free(h);
    free(beta);
    free(weight);
    return worst;
}

/* N calls between two events, slots in a scattered order. */
static void capture(const struct bench *b, const struct form *form, const struct shape *shape,
                    const struct layout *l, struct entry *e, int nodes, int slots)
{
    cudaGraph_t graph = NULL;
    need(cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal), "begin");
    need(cudaEventRecordWithFlags(b->start, b->stream, cudaEventRecordExternal), "start");
    for (int i = 0; i < nodes; i++) {
        const size_t slot = (size_t)i * 7919u % (size_t)slots;
        struct fib_norm_args args = slot_args(b, form, shape, l, slot);
        args.dependent_launch = e->args.dependent_launch;
        need((cudaError_t)fib_norm_launch(&args, &e->plan, b->stream), "launch");
    }
    need(cudaEventRecordWithFlags(b->stop, b->stream, cudaEventRecordExternal), "stop");
    need(cudaStreamEndCapture(b->stream, &graph), "end");
    need(cudaGraphInstantiate(&e->graph, graph, 0), "instantiate");
    need(cudaGraphDestroy(graph), "destroy");
}

static double window_us(const struct bench *b, const struct entry *e)
{
    float ms = 0.0f;
    need(cudaGraphLaunch(e->graph, b->stream), "graph");
    need(cudaStreamSynchronize(b->stream), e->name);
    need(cudaEventElapsedTime(&ms, b->start, b->stop), "elapsed");
    return (double)ms * 1e3;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Fills `e` for one word of the list; false with a message when the variant does not fit. */
static bool parse_variant(const struct bench *b, const struct fib_norm_args *args, const char *word,
                          struct entry *e)
{
    char base[48], reason[512], resolved[32];
    snprintf(base, sizeof base, "%s", word);
    char *const plus = strchr(base, '+');
    memset(e, 0, sizeof *e);
    e->args = *args;
    if (plus) {
        *plus = '\0';
        e->args.dependent_launch = true;
    }
    if (strcmp(base, "auto") == 0)
        fib_norm_choose(args, b->unit_count, &e->plan);
    else if (!fib_norm_find(args, base, &e->plan, reason, sizeof reason))
        return false;
    fib_norm_plan_name(&e->plan, resolved, sizeof resolved);
    need((cudaError_t)fib_norm_load(&e->args, &e->plan), resolved);
    snprintf(e->name, sizeof e->name, "%s%s%s", strcmp(base, "auto") == 0 ? "auto=" : "", resolved,
             plus ? "+pdl" : "");
    return true;
}

static void run_shape(const struct bench *b, const struct form *form, const struct shape *shape,
                      const char *variants)
{
    static struct entry entries[MAX_VARIANTS];
    const struct layout l = lay_out(form, shape);
    const double bytes = moved_bytes(form, shape), guess_us = 1.5 + bytes / 4.1e6;
    int slots = (int)fmin(ceil(ring_bytes / (double)l.slot_bytes) + 1.0, MAX_NODES), count = 0;
    if ((size_t)slots * l.slot_bytes > arena_bytes)
        slots = (int)(arena_bytes / l.slot_bytes);
    while (fib_stats_gcd((uint64_t)slots, 7919) != 1)
        slots--;
    const int nodes = (int)fmin(fmax(slots, ceil(least_window_us / guess_us)), MAX_NODES);
    const struct fib_norm_args args = slot_args(b, form, shape, &l, 0);
    char list[256];
    snprintf(list, sizeof list, "%s", variants);
    fill(b, (size_t)slots * l.slot_bytes);
    for (char *word = strtok(list, " "); word && count < MAX_VARIANTS; word = strtok(NULL, " "))
        count += parse_variant(b, &args, word, &entries[count]);
    for (int k = 0; k < count; k++) {
        entries[k].worst = check(b, form, &entries[k], &l);
        capture(b, form, shape, &l, &entries[k], nodes, slots);
        window_us(b, &entries[k]);
    }
    for (int r = 0; r < ROUNDS; r++)
        for (int k = 0; k < count; k++)
            entries[k].times[r] = (window_us(b, &entries[k]) - window_overhead_us) / nodes;
    printf("%s %lldx%lld (%d calls, %d slots)\n", form->name, (long long)shape->rows,
           (long long)shape->cols, nodes, slots);
    for (int k = 0; k < count; k++) {
        struct entry *const e = &entries[k];
        qsort(e->times, ROUNDS, sizeof e->times[0], by_value);
        const double us = e->times[ROUNDS / 2];
        printf("  %-28s %9.3f us  %6.3f TB/s  min %9.3f  err %.3f%s\n", e->name, us,
               bytes / us * 1e-6, e->times[0], e->worst, e->worst <= 1.01 ? "" : "  WRONG");
        need(cudaGraphExecDestroy(e->graph), "destroy");
    }
    fflush(stdout);
}

/* Sums of uniforms: near enough to a normal distribution. */
static void make_pattern(struct bench *b)
{
    uint16_t *const host = malloc((size_t)PATTERN_ELEMENTS * 2);
    uint64_t state = 42;
    if (!host)
        exit(1);
    for (size_t i = 0; i < PATTERN_ELEMENTS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double sum =
            (double)(state >> 48) + (double)(state >> 32 & 0xffff) + (double)(state >> 16 & 0xffff);
        const float value = (float)((sum / 65536.0 - 1.5) * 2.0);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        host[i] = (uint16_t)(bits >> 16);
    }
    need(cudaMalloc((void **)&b->pattern, (size_t)PATTERN_ELEMENTS * 2), "pattern");
    need(cudaMemcpy(b->pattern, host, (size_t)PATTERN_ELEMENTS * 2, cudaMemcpyHostToDevice),
         "pattern");
    free(host);
}

static void open_bench(struct bench *b)
{
    const float one = 1.0f;
    need(cudaMalloc((void **)&b->arena, arena_bytes), "arena");
    need(cudaMalloc((void **)&b->scale, sizeof one), "scale");
    need(cudaMemcpy(b->scale, &one, sizeof one, cudaMemcpyHostToDevice), "scale");
    need(cudaStreamCreate(&b->stream), "stream");
    need(cudaEventCreate(&b->start), "event");
    need(cudaEventCreate(&b->stop), "event");
    need(cudaDeviceGetAttribute(&b->unit_count, cudaDevAttrMultiProcessorCount, 0), "units");
    make_pattern(b);
}

static const struct form *form_of(const char *name)
{
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
        if (strcmp(forms[f].name, name) == 0)
            return &forms[f];
    return NULL;
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    open_bench(&b);
    char wanted[256] = "";
    for (int i = 3; i < argc; i++) {
        strncat(wanted, argv[i], sizeof wanted - strlen(wanted) - 2);
        strcat(wanted, " ");
    }
    if (argc > 2 && form_of(argv[1])) {
        struct shape shape = {.form = argv[1]};
        long long rows = 0, cols = 0;
        if (sscanf(argv[2], "%lldx%lld", &rows, &cols) != 2)
            return 1;
        shape.rows = rows;
        shape.cols = cols;
        run_shape(&b, form_of(argv[1]), &shape, wanted[0] ? wanted : ROW_LONG);
        return 0;
    }
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        if (argc < 2 || strstr(shapes[s].form, argv[1]))
            run_shape(&b, form_of(shapes[s].form), &shapes[s], shapes[s].variants);
    return 0;
}
