/* Translates between the program's cases and problems and those of the plug-in ABI. */
#include "core/plugin_case.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/case.h"
#include "core/memory.h"
#include "core/routine.h"

/* The numbers of the ABI never change; the program's may, and then need a table here. */
#define SAME(ours, theirs)                                                                         \
    static_assert((int)(ours) == (int)(theirs), "the ABI's numbers are the program's")
SAME(FIB_BF16, FIB_PLUGIN_BF16);
SAME(FIB_F16, FIB_PLUGIN_F16);
SAME(FIB_F32, FIB_PLUGIN_F32);
SAME(FIB_F64, FIB_PLUGIN_F64);
SAME(FIB_FP8_E4M3, FIB_PLUGIN_FP8_E4M3);
SAME(FIB_FP8_E5M2, FIB_PLUGIN_FP8_E5M2);
SAME(FIB_U8, FIB_PLUGIN_U8);
SAME(FIB_I32, FIB_PLUGIN_I32);
SAME(FIB_I64, FIB_PLUGIN_I64);
SAME(FIB_INPUT, FIB_PLUGIN_INPUT);
SAME(FIB_OUTPUT, FIB_PLUGIN_OUTPUT);
SAME(FIB_INOUT, FIB_PLUGIN_INOUT);
SAME(FIB_SCALAR, FIB_PLUGIN_SCALAR);
SAME(FIB_FILL_NORMAL, FIB_PLUGIN_FILL_NORMAL);
SAME(FIB_FILL_UNIFORM, FIB_PLUGIN_FILL_UNIFORM);
SAME(FIB_FILL_INTS, FIB_PLUGIN_FILL_INTS);
SAME(FIB_FILL_CONSTANT, FIB_PLUGIN_FILL_CONSTANT);
SAME(FIB_CHECK_FLOAT, FIB_PLUGIN_CHECK_FLOAT);
SAME(FIB_CHECK_CODES, FIB_PLUGIN_CHECK_CODES);
SAME(FIB_DEVICE_CPU, FIB_PLUGIN_CPU);
SAME(FIB_DEVICE_CUDA, FIB_PLUGIN_CUDA);
SAME(FIB_MAX_TENSORS, FIB_PLUGIN_MAX_TENSORS);
SAME(FIB_MAX_RANK, FIB_PLUGIN_MAX_RANK);

static const double most_tensor_bytes = 0x1p50;

/* ---- out ---- */

static struct fib_plugin_value value_of(const struct fib_option *option,
                                        const struct fib_value *value)
{
    struct fib_plugin_value out = {.name = option->name, .text = value->set ? value->text : NULL};
    if (option->kind == FIB_OPT_I64 || option->kind == FIB_OPT_SWITCH)
        out.i64 = value->i64;
    out.f64 = option->kind == FIB_OPT_F64 ? value->f64 : (double)out.i64;
    return out;
}

static struct fib_plugin_tensor tensor_of(const struct fib_tensor *tensor)
{
    struct fib_plugin_tensor out = {.name = tensor->name,
                                    .role = tensor->role,
                                    .dtype = (int32_t)tensor->dtype,
                                    .rank = tensor->rank,
                                    .fill = tensor->fill.kind,
                                    .scale = tensor->fill.scale,
                                    .offset = tensor->fill.offset,
                                    .check = tensor->check,
                                    .row_elems = tensor->row_elems};
    memcpy(out.shape, tensor->shape, sizeof(out.shape));
    return out;
}

const struct fib_plugin_case *fib_plugin_case_make(const struct fib_case *kase,
                                                   const struct fib_problem *problem,
                                                   const struct fib_device *device,
                                                   struct fib_arena *arena)
{
    struct fib_plugin_case *const out = fib_arena_alloc(arena, sizeof(*out));
    struct fib_plugin_value *const values =
        fib_arena_array(arena, kase->options->count + 1, sizeof(values[0]));
    struct fib_plugin_tensor *const tensors =
        fib_arena_array(arena, FIB_MAX_TENSORS, sizeof(tensors[0]));
    out->routine = kase->routine->name;
    out->device = device ? (int32_t)device->facts.kind : FIB_PLUGIN_CPU;
    out->compute_capability = device ? device->facts.compute_capability : 0;
    out->values = values;
    out->tensors = tensors;
    for (size_t i = 0; i < kase->options->count; i++)
        if (kase->options->rows[i].scope == FIB_SCOPE_ROUTINE)
            values[out->value_count++] = value_of(&kase->options->rows[i], &kase->values[i]);
    for (int t = 0; problem && t < problem->tensor_count; t++)
        tensors[out->tensor_count++] = tensor_of(&problem->tensors[t]);
    return out;
}

/* ---- in ---- */

static bool within(int32_t value, int32_t least, int32_t most)
{
    return value >= least && value <= most;
}

static enum fib_status check_kinds(const struct fib_plugin_tensor *tensor, struct fib_error *err)
{
    const struct {
        const char *name;
        int32_t value, most;
    } rows[] = {{"role", tensor->role, FIB_PLUGIN_SCALAR},
                {"dtype", tensor->dtype, FIB_PLUGIN_I64},
                {"rank", tensor->rank, FIB_PLUGIN_MAX_RANK},
                {"fill", tensor->fill, FIB_PLUGIN_FILL_CONSTANT},
                {"check", tensor->check, FIB_PLUGIN_CHECK_CODES}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (!within(rows[i].value, 0, rows[i].most))
            return fib_fail(err, FIB_ERR_DEVICE, "describe: tensor %s has %s %d; allowed: 0 .. %d",
                            tensor->name, rows[i].name, rows[i].value, rows[i].most);
    const bool written = tensor->role == FIB_PLUGIN_OUTPUT || tensor->role == FIB_PLUGIN_INOUT;
    const bool filled = tensor->fill != FIB_PLUGIN_FILL_NONE;
    if (filled == (tensor->role == FIB_PLUGIN_OUTPUT))
        return fib_fail(err, FIB_ERR_DEVICE, "describe: tensor %s: %s", tensor->name,
                        filled ? "an output has no fill" : "an input needs a fill");
    if (tensor->check != FIB_PLUGIN_CHECK_NONE && !written)
        return fib_fail(err, FIB_ERR_DEVICE, "describe: tensor %s: only what is written is checked",
                        tensor->name);
    if (!isfinite(tensor->scale) || !isfinite(tensor->offset))
        return fib_fail(err, FIB_ERR_DEVICE, "describe: tensor %s: scale and offset must be finite",
                        tensor->name);
    return FIB_OK;
}

static enum fib_status check_shape(const struct fib_plugin_tensor *tensor, struct fib_error *err)
{
    double bytes = (double)fib_dtype_bytes((enum fib_dtype)tensor->dtype);
    for (int d = 0; d < tensor->rank; d++) {
        if (tensor->shape[d] < 1)
            return fib_fail(err, FIB_ERR_DEVICE,
                            "describe: dimension %d of tensor %s is %" PRId64 "; must be >= 1", d,
                            tensor->name, tensor->shape[d]);
        bytes *= (double)tensor->shape[d];
    }
    if (bytes > most_tensor_bytes)
        return fib_fail(err, FIB_ERR_DEVICE, "describe: tensor %s would take %.3g bytes",
                        tensor->name, bytes);
    return FIB_OK;
}

static struct fib_tensor tensor_from(const struct fib_plugin_tensor *described, bool has_reference)
{
    struct fib_tensor tensor = {.name = described->name,
                                .role = (enum fib_role)described->role,
                                .dtype = (enum fib_dtype)described->dtype,
                                .rank = described->rank,
                                .fill = {.kind = (enum fib_fill_kind)described->fill,
                                         .scale = described->scale,
                                         .offset = described->offset,
                                         .by_init = described->fill == FIB_PLUGIN_FILL_NORMAL},
                                .check = has_reference ? (enum fib_check_kind)described->check
                                                       : FIB_CHECK_NONE,
                                .row_elems = has_reference ? described->row_elems : 0};
    memcpy(tensor.shape, described->shape, sizeof(tensor.shape));
    return tensor;
}

/* Rows of a checked tensor are all of it; those of an input too, where it has rows. */
static enum fib_status check_rows(const struct fib_problem *problem,
                                  const struct fib_tensor *tensor, struct fib_error *err)
{
    const int64_t elems = fib_tensor_elems(tensor);
    if (tensor->check == FIB_CHECK_NONE && tensor->row_elems == 0)
        return FIB_OK;
    if (tensor->row_elems < 1 || elems % tensor->row_elems != 0 ||
        elems / tensor->row_elems != problem->row_count)
        return fib_fail(err, FIB_ERR_DEVICE,
                        "describe: tensor %s has %" PRId64 " elements, which are not %" PRId64
                        " rows of %" PRId64,
                        tensor->name, elems, problem->row_count, tensor->row_elems);
    return FIB_OK;
}

static enum fib_status add_tensor(const struct fib_plugin_tensor *described, bool has_reference,
                                  struct fib_problem *problem, struct fib_error *err)
{
    if (!described->name || !*described->name)
        return fib_fail(err, FIB_ERR_DEVICE, "describe: tensor %d has no name",
                        problem->tensor_count);
    if (fib_problem_find(problem, described->name) >= 0)
        return fib_fail(err, FIB_ERR_DEVICE, "describe: two tensors are called %s",
                        described->name);
    enum fib_status st = check_kinds(described, err);
    if (st == FIB_OK)
        st = check_shape(described, err);
    if (st != FIB_OK)
        return st;
    const struct fib_tensor tensor = tensor_from(described, has_reference);
    return check_rows(problem, fib_problem_add(problem, &tensor), err);
}

static enum fib_status check_outputs(const struct fib_problem *problem, bool has_reference,
                                     struct fib_error *err)
{
    bool written = false, checked = false;
    for (int t = 0; t < problem->tensor_count; t++) {
        written = written || fib_tensor_is_written(&problem->tensors[t]);
        checked = checked || problem->tensors[t].check != FIB_CHECK_NONE;
    }
    if (!written)
        return fib_fail(err, FIB_ERR_DEVICE, "describe: no tensor is an output");
    if (has_reference && !checked)
        return fib_fail(err, FIB_ERR_DEVICE,
                        "describe: no output is checked, although there is a reference");
    return FIB_OK;
}

/* Each byte need move once: inputs in, outputs out, in-place tensors both ways. */
static double most_traffic(const struct fib_problem *problem)
{
    double bytes = 0.0;
    for (int t = 0; t < problem->tensor_count; t++)
        bytes += (double)fib_tensor_bytes(&problem->tensors[t]) *
                 (problem->tensors[t].role == FIB_INOUT ? 2.0 : 1.0);
    return bytes;
}

static enum fib_status take_work(double flops, double bytes, struct fib_problem *problem,
                                 struct fib_error *err)
{
    const double most = most_traffic(problem);
    if (!(bytes >= 1.0 && bytes <= most))
        return fib_fail(err, FIB_ERR_DEVICE,
                        "traffic: %.9g bytes; must be 1 .. %.0f, the bytes of the tensors", bytes,
                        most);
    if (!(flops >= 0.0 && flops <= 1e21))
        return fib_fail(err, FIB_ERR_DEVICE, "traffic: %.9g flops; must be 0 .. 1e21", flops);
    problem->cost = (struct fib_cost){.flops = flops, .traffic_bytes = bytes};
    return FIB_OK;
}

enum fib_status fib_plugin_problem_take(const struct fib_plugin_problem *described, double flops,
                                        double bytes, bool has_reference,
                                        struct fib_problem *problem, struct fib_error *err)
{
    enum fib_status st = FIB_OK;
    if (!within(described->tensor_count, 1, FIB_MAX_TENSORS))
        return fib_fail(err, FIB_ERR_DEVICE, "describe: %d tensors; allowed: 1 .. %d",
                        described->tensor_count, FIB_MAX_TENSORS);
    if (has_reference && (described->row_count < 1 || !(described->row_flops >= 0.0) ||
                          !isfinite(described->row_flops)))
        return fib_fail(err, FIB_ERR_DEVICE,
                        "describe: %" PRId64 " rows of %.9g flops for the reference",
                        described->row_count, described->row_flops);
    problem->row_count = has_reference ? described->row_count : 0;
    problem->row_flops = has_reference ? fmax(described->row_flops, 1.0) : 0.0;
    for (int t = 0; t < described->tensor_count && st == FIB_OK; t++)
        st = add_tensor(&described->tensors[t], has_reference, problem, err);
    if (st == FIB_OK)
        st = check_outputs(problem, has_reference, err);
    return st == FIB_OK ? take_work(flops, bytes, problem, err) : st;
}
