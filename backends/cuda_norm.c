/* Norm routines by our own CUDA kernels: finds the tensors, picks the variant, launches. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/backend.h"
#include "core/memory.h"
#include "gpu/stream.h"
#include "kernels/norm.h"
#include "routines/norm.h"

struct fib_prepared {
    struct fib_norm_args args;
    struct fib_norm_plan plan;
    const char *name; /* of the mathematics, "rmsnorm" */
};

static enum fib_norm_type norm_type(enum fib_dtype dtype)
{
    switch (dtype) {
    case FIB_F16:
        return FIB_NORM_F16;
    case FIB_F32:
        return FIB_NORM_F32;
    case FIB_FP8_E4M3:
        return FIB_NORM_E4M3;
    case FIB_FP8_E5M2:
        return FIB_NORM_E5M2;
    default:
        return FIB_NORM_BF16;
    }
}

static void *find_data(const struct fib_problem *problem, void *const *data, const char *name)
{
    const int t = fib_problem_find(problem, name);
    return t < 0 || !data ? NULL : data[t];
}

/* The problem in the kernels' terms; without `data` (before there are tensors) addresses are NULL,
 * which counts as aligned. */
static struct fib_norm_args norm_args(const struct fib_case *kase,
                                      const struct fib_problem *problem, void *const *data)
{
    const struct norm_params *const params = kase->params;
    const int codes = fib_problem_find(problem, "out");
    const bool layer = fib_problem_find(problem, "gamma") >= 0;
    const bool replaces_x = codes < 0 && fib_problem_find(problem, "residual") >= 0;
    const enum fib_norm_type in_type = norm_type(params->input_dtype);
    return (struct fib_norm_args){
        .x = find_data(problem, data, "x"),
        .residual = find_data(problem, data, "residual"),
        .weight = find_data(problem, data, layer ? "gamma" : "w"),
        .beta = find_data(problem, data, "beta"),
        .scale = find_data(problem, data, "scale"),
        .out = find_data(problem, data,
                         codes >= 0   ? "out"
                         : replaces_x ? "x"
                                      : "y"),
        .rows = problem->row_count,
        .cols = params->hidden_size,
        .eps = (float)params->eps,
        .in_type = in_type,
        .out_type = codes >= 0 ? norm_type(problem->tensors[codes].dtype) : in_type,
        .layer = layer,
        .adds = fib_problem_find(problem, "residual") >= 0,
        .dependent_launch = kase->settings.enable_pdl,
    };
}

static const char *refuse(const struct fib_case *kase, const struct fib_problem *problem,
                          const struct fib_device *device, char *buffer, size_t buffer_bytes)
{
    struct fib_norm_plan plan;
    (void)device;
    if (!kase->settings.variant)
        return NULL;
    const struct fib_norm_args args = norm_args(kase, problem, NULL);
    return fib_norm_find(&args, kase->settings.variant, &plan, buffer, buffer_bytes) ? NULL
                                                                                     : buffer;
}

static enum fib_status pick_plan(const struct fib_prepare_args *args, struct fib_prepared *p,
                                 struct fib_error *err)
{
    char reason[512];
    if (!args->kase->settings.variant)
        fib_norm_choose(&p->args, args->device->facts.unit_count, &p->plan);
    else if (!fib_norm_find(&p->args, args->kase->settings.variant, &p->plan, reason,
                            sizeof reason))
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "%s", reason);
    return fib_cuda_launched(fib_norm_load(&p->args, &p->plan), "loading the norm kernel", err);
}

static enum fib_status prepare(const struct fib_prepare_args *args, struct fib_prepared **prepared,
                               const char *name, bool gemma, struct fib_error *err)
{
    struct fib_prepared *const p = fib_zalloc(sizeof *p);
    p->name = name;
    p->args = norm_args(args->kase, args->problem, args->data);
    p->args.gemma = gemma;
    const enum fib_status st = pick_plan(args, p, err);
    if (st != FIB_OK) {
        free(p);
        return st;
    }
    *prepared = p;
    return FIB_OK;
}

static enum fib_status prepare_rms(const struct fib_prepare_args *args,
                                   struct fib_prepared **prepared, struct fib_error *err)
{
    return prepare(args, prepared, "rmsnorm", false, err);
}

static enum fib_status prepare_gemma(const struct fib_prepare_args *args,
                                     struct fib_prepared **prepared, struct fib_error *err)
{
    return prepare(args, prepared, "gemma_rmsnorm", true, err);
}

static enum fib_status prepare_layer(const struct fib_prepare_args *args,
                                     struct fib_prepared **prepared, struct fib_error *err)
{
    return prepare(args, prepared, "layernorm", false, err);
}

static enum fib_status run(struct fib_prepared *prepared, struct fib_stream *stream,
                           struct fib_error *err)
{
    const int code = fib_norm_launch(&prepared->args, &prepared->plan, fib_cuda_stream(stream));
    return code ? fib_cuda_launched(code, "launching the norm kernel", err) : FIB_OK;
}

static void release(struct fib_prepared **prepared)
{
    free(*prepared);
    *prepared = NULL;
}

static const char *resolved(const struct fib_prepared *prepared, char *buffer, size_t buffer_bytes)
{
    char plan[32];
    fib_norm_plan_name(&prepared->plan, plan, sizeof plan);
    snprintf(buffer, buffer_bytes, "cuda/%s_%s", prepared->name, plan);
    return buffer;
}

#define IMPL(routine_, prepare_)                                                                   \
    {                                                                                              \
        .routine = (routine_), .label = "cuda", .device_kind = FIB_DEVICE_CUDA, .min_cc = 90,      \
        .auto_rank = 10, .refuse = refuse, .prepare = (prepare_), .run = run, .release = release,  \
        .resolved = resolved                                                                       \
    }

static const struct fib_impl impls[] = {
    IMPL("rmsnorm", prepare_rms),           IMPL("gemma_rmsnorm", prepare_gemma),
    IMPL("fused_add_rmsnorm", prepare_rms), IMPL("gemma_fused_add_rmsnorm", prepare_gemma),
    IMPL("rmsnorm_quant", prepare_rms),     IMPL("fused_add_rmsnorm_quant", prepare_rms),
    IMPL("layernorm_quant", prepare_layer),
};

const struct fib_backend fib_backend_cuda_norm = FIB_BACKEND("cuda_norm", impls);
