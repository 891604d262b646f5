/* Each label wraps the cpu implementation and breaks one promise. */
#include "tests/fake_backends.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backends.h"
#include "core/memory.h"
#include "core/routine.h"
#include "tests/misdeeds.h"

enum fault {
    GOOD,
    SLOW,
    WRONG,
    ZEROS,
    UNWRITTEN,
    GUARD,
    INPUT,
    LATER,
    STALE,
    ERROR,
    LATE_ERROR,
    OOM,
    ZERO_TIME,
    FIRST_MISDEED /* + enum misdeed; + LATE, + IN_PREPARE */
};
enum { LATE = 100, IN_PREPARE = 200, LATE_CALL = 6 };

/* What the fault does to its process in call number `call` (0: in prepare). */
static enum misdeed misdeed_of(enum fault fault, int call)
{
    const int code = (int)fault - FIRST_MISDEED;
    if (code < 0)
        return MISDEED_NONE;
    const int first_call = code >= IN_PREPARE ? 0 : code >= LATE ? LATE_CALL : 1;
    const bool due = first_call == 0 ? call == 0 : call >= first_call;
    return due ? (enum misdeed)(code % LATE) : MISDEED_NONE;
}

/* Shared by all slots of one arm: how often it was called, and what the first call gave. */
struct arm_state {
    int call_count;
    void *stale[FIB_MAX_TENSORS];
};

struct fib_prepared {
    enum fault fault;
    const struct fib_impl *inner;
    struct fib_prepared *inner_prepared;
    struct fib_prepare_args args;
    struct arm_state *state;
};

static const struct fib_impl *cpu_impl(const char *routine)
{
    for (size_t b = 0; b < fib_backend_count; b++)
        for (size_t i = 0; i < fib_backends[b]->impl_count; i++)
            if (strcmp(fib_backends[b]->impls[i].routine, routine) == 0 &&
                strcmp(fib_backends[b]->impls[i].label, "cpu") == 0)
                return &fib_backends[b]->impls[i];
    return NULL;
}

static enum fib_status prepare(const struct fib_prepare_args *args, enum fault fault,
                               struct fib_prepared **prepared, struct fib_error *err)
{
    if (fault == OOM)
        return fib_fail(err, FIB_ERR_OOM, "workspace of 99 GiB does not fit");
    const enum fib_status st = misdeed_do(misdeed_of(fault, 0), args->device, args->data[0], err);
    if (st != FIB_OK)
        return st;
    struct fib_prepared *const p = fib_zalloc(sizeof(*p));
    struct fib_prepare_args inner_args = *args;
    inner_args.first = args->first ? args->first->inner_prepared : NULL;
    p->fault = fault;
    p->args = *args;
    p->inner = cpu_impl(args->kase->routine->name);
    p->state = args->first ? args->first->state : fib_zalloc(sizeof(*p->state));
    *prepared = p;
    return p->inner->prepare(&inner_args, &p->inner_prepared, err);
}

static void release(struct fib_prepared **prepared)
{
    if (!*prepared)
        return;
    (*prepared)->inner->release(&(*prepared)->inner_prepared);
    if ((*prepared)->args.slot == 0) {
        for (int t = 0; t < FIB_MAX_TENSORS; t++)
            free((*prepared)->state->stale[t]);
        free((*prepared)->state);
    }
    free(*prepared);
    *prepared = NULL;
}

static int find_role(const struct fib_problem *problem, bool written)
{
    for (int t = 0; t < problem->tensor_count; t++)
        if (fib_tensor_is_written(&problem->tensors[t]) == written)
            return t;
    return -1;
}

static void double_outputs(const struct fib_prepared *p)
{
    for (int t = 0; t < p->args.problem->tensor_count; t++) {
        const struct fib_tensor *const tensor = &p->args.problem->tensors[t];
        if (!fib_tensor_is_written(tensor))
            continue;
        for (int64_t i = 0; i < fib_tensor_elems(tensor); i++)
            fib_dtype_store(tensor->dtype, p->args.data[t], (size_t)i,
                            2.0 * fib_dtype_load(tensor->dtype, p->args.data[t], (size_t)i));
    }
}

static void repeat_first(const struct fib_prepared *p)
{
    for (int t = 0; t < p->args.problem->tensor_count; t++) {
        const struct fib_tensor *const tensor = &p->args.problem->tensors[t];
        const size_t bytes = fib_tensor_bytes(tensor);
        if (!fib_tensor_is_written(tensor))
            continue;
        if (!p->state->stale[t]) {
            p->state->stale[t] = fib_zalloc(bytes);
            memcpy(p->state->stale[t], p->args.data[t], bytes);
        }
        memcpy(p->args.data[t], p->state->stale[t], bytes);
    }
}

static void sabotage(const struct fib_prepared *p, const unsigned char *kept)
{
    const struct fib_problem *const problem = p->args.problem;
    const int out = find_role(problem, true), in = find_role(problem, false);
    const struct fib_tensor *const tensor = &problem->tensors[out];
    const size_t bytes = fib_tensor_bytes(tensor), item = fib_dtype_bytes(tensor->dtype);
    unsigned char *const data = p->args.data[out];
    if (p->fault == WRONG || (p->fault == LATER && p->state->call_count > 2))
        double_outputs(p);
    else if (p->fault == ZEROS)
        memset(data, 0, bytes);
    else if (p->fault == UNWRITTEN)
        memcpy(data + bytes - item, kept, item);
    else if (p->fault == GUARD)
        data[bytes] ^= 1;
    else if (p->fault == INPUT)
        ((unsigned char *)p->args.data[in])[0] ^= 1;
    else if (p->fault == STALE)
        repeat_first(p);
}

static double call_ms(enum fault fault)
{
    return fault == ZERO_TIME ? 0.0 : fault == SLOW ? 1.1 : 1.0;
}

static enum fib_status run(struct fib_prepared *p, struct fib_stream *stream, struct fib_error *err)
{
    const struct fib_tensor *const tensor =
        &p->args.problem->tensors[find_role(p->args.problem, true)];
    const size_t item = fib_dtype_bytes(tensor->dtype);
    const unsigned char *const last =
        (unsigned char *)p->args.data[find_role(p->args.problem, true)] + fib_tensor_bytes(tensor) -
        item;
    unsigned char kept[8];
    memcpy(kept, last, item);
    p->state->call_count++;
    if (p->fault == ERROR || (p->fault == LATE_ERROR && p->state->call_count >= 10))
        return fib_fail(err, FIB_ERR_DEVICE, "the device reported an illegal address");
    enum fib_status st = p->inner->run(p->inner_prepared, stream, err);
    if (st == FIB_OK)
        st = misdeed_do(misdeed_of(p->fault, p->state->call_count), p->args.device,
                        p->args.data[find_role(p->args.problem, true)], err);
    sabotage(p, kept);
    if (strcmp(p->args.device->facts.uuid, "fake-0") == 0)
        fib_device_fake_advance(p->args.device, call_ms(p->fault));
    return st;
}

static const char *resolved(const struct fib_prepared *p, char *buffer, size_t buffer_bytes)
{
    snprintf(buffer, buffer_bytes, "fake/%d", (int)p->fault);
    return buffer;
}

static const char *refuse(const struct fib_case *kase, const struct fib_problem *problem,
                          const struct fib_device *device, char *buffer, size_t buffer_bytes)
{
    (void)kase, (void)problem, (void)device;
    snprintf(buffer, buffer_bytes, "needs a moon phase of %d", 3);
    return buffer;
}

#define PREPARE(name, fault)                                                                       \
    static enum fib_status prepare_##name(const struct fib_prepare_args *args,                     \
                                          struct fib_prepared **prepared, struct fib_error *err)   \
    {                                                                                              \
        return prepare(args, fault, prepared, err);                                                \
    }
PREPARE(good, GOOD)
PREPARE(slow, SLOW)
PREPARE(wrong, WRONG)
PREPARE(zeros, ZEROS)
PREPARE(unwritten, UNWRITTEN)
PREPARE(guard, GUARD)
PREPARE(input, INPUT)
PREPARE(later, LATER)
PREPARE(stale, STALE)
PREPARE(error, ERROR)
PREPARE(late_error, LATE_ERROR)
PREPARE(oom, OOM)
PREPARE(zero_time, ZERO_TIME)
PREPARE(segv, FIRST_MISDEED + MISDEED_SEGV)
PREPARE(late_segv, FIRST_MISDEED + LATE + MISDEED_SEGV)
PREPARE(early_segv, FIRST_MISDEED + IN_PREPARE + MISDEED_SEGV)
PREPARE(far, FIRST_MISDEED + MISDEED_FAR)
PREPARE(abort, FIRST_MISDEED + MISDEED_ABORT)
PREPARE(exit0, FIRST_MISDEED + MISDEED_EXIT0)
PREPARE(exit3, FIRST_MISDEED + LATE + MISDEED_EXIT3)
PREPARE(stack, FIRST_MISDEED + MISDEED_STACK)
PREPARE(kill, FIRST_MISDEED + LATE + MISDEED_KILL)
PREPARE(sleep, FIRST_MISDEED + MISDEED_SLEEP)
PREPARE(spin, FIRST_MISDEED + LATE + MISDEED_SPIN)
PREPARE(hog, FIRST_MISDEED + IN_PREPARE + MISDEED_HOG)
PREPARE(noise, FIRST_MISDEED + MISDEED_NOISE)
PREPARE(lose, FIRST_MISDEED + LATE + MISDEED_LOSE)
PREPARE(early_lose, FIRST_MISDEED + IN_PREPARE + MISDEED_LOSE)

#define IMPL(routine_, label_, name)                                                               \
    {                                                                                              \
        .routine = (routine_), .label = (label_), .device_kind = FIB_DEVICE_CPU,                   \
        .prepare = prepare_##name, .run = run, .release = release, .resolved = resolved            \
    }
#define IMPLS(routine_)                                                                            \
    IMPL(routine_, "fake-good", good), IMPL(routine_, "fake-slow", slow),                          \
        IMPL(routine_, "fake-wrong", wrong), IMPL(routine_, "fake-zeros", zeros),                  \
        IMPL(routine_, "fake-unwritten", unwritten), IMPL(routine_, "fake-guard", guard),          \
        IMPL(routine_, "fake-input", input), IMPL(routine_, "fake-later", later),                  \
        IMPL(routine_, "fake-stale", stale), IMPL(routine_, "fake-error", error),                  \
        IMPL(routine_, "fake-late-error", late_error), IMPL(routine_, "fake-oom", oom),            \
        IMPL(routine_, "fake-zero-time", zero_time), IMPL(routine_, "fake-segv", segv),            \
        IMPL(routine_, "fake-late-segv", late_segv),                                               \
        IMPL(routine_, "fake-early-segv", early_segv), IMPL(routine_, "fake-far", far),            \
        IMPL(routine_, "fake-abort", abort), IMPL(routine_, "fake-exit0", exit0),                  \
        IMPL(routine_, "fake-exit3", exit3), IMPL(routine_, "fake-stack", stack),                  \
        IMPL(routine_, "fake-kill", kill), IMPL(routine_, "fake-sleep", sleep),                    \
        IMPL(routine_, "fake-spin", spin), IMPL(routine_, "fake-hog", hog),                        \
        IMPL(routine_, "fake-noise", noise), IMPL(routine_, "fake-lose", lose),                    \
        IMPL(routine_, "fake-early-lose", early_lose),                                             \
    {                                                                                              \
        .routine = (routine_), .label = "fake-refuse", .device_kind = FIB_DEVICE_CPU,              \
        .refuse = refuse, .prepare = prepare_good, .run = run, .release = release,                 \
        .resolved = resolved                                                                       \
    }

static const struct fib_impl impls[] = {IMPLS("rmsnorm"), IMPLS("fused_add_rmsnorm"),
                                        IMPLS("rmsnorm_quant"), IMPLS("mm_bf16")};

const struct fib_backend fib_backend_fake = FIB_BACKEND("fake", impls);

#define LABEL(name_)                                                                               \
    {                                                                                              \
        .name = (name_), .meaning = "a test's backend"                                             \
    }
static const struct fib_label fake_labels[] = {
    LABEL("fake-good"),      LABEL("fake-slow"),       LABEL("fake-wrong"),
    LABEL("fake-zeros"),     LABEL("fake-unwritten"),  LABEL("fake-guard"),
    LABEL("fake-input"),     LABEL("fake-later"),      LABEL("fake-stale"),
    LABEL("fake-error"),     LABEL("fake-late-error"), LABEL("fake-oom"),
    LABEL("fake-refuse"),    LABEL("fake-zero-time"),  LABEL("fake-segv"),
    LABEL("fake-late-segv"), LABEL("fake-early-segv"), LABEL("fake-far"),
    LABEL("fake-abort"),     LABEL("fake-exit0"),      LABEL("fake-exit3"),
    LABEL("fake-stack"),     LABEL("fake-kill"),       LABEL("fake-sleep"),
    LABEL("fake-spin"),      LABEL("fake-hog"),        LABEL("fake-noise"),
    LABEL("fake-lose"),      LABEL("fake-early-lose"),
};

void fake_registry_init(struct fake_registry *fakes, const struct fib_registry *base)
{
    const size_t fake_label_count = sizeof(fake_labels) / sizeof(fake_labels[0]);
    const size_t backend_count = base->backend_count, label_count = base->label_count;
    assert(backend_count < sizeof(fakes->backends) / sizeof(fakes->backends[0]));
    assert(label_count + fake_label_count <= sizeof(fakes->labels) / sizeof(fakes->labels[0]));
    memcpy(fakes->backends, base->backends, backend_count * sizeof(fakes->backends[0]));
    fakes->backends[backend_count] = &fib_backend_fake;
    memcpy(fakes->labels, base->labels, label_count * sizeof(fakes->labels[0]));
    memcpy(fakes->labels + label_count, fake_labels, sizeof(fake_labels));
    fakes->registry = *base;
    fakes->registry.backends = fakes->backends;
    fakes->registry.backend_count = backend_count + 1;
    fakes->registry.labels = fakes->labels;
    fakes->registry.label_count = label_count + fake_label_count;
}
