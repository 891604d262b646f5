/* Each label wraps a sound implementation and breaks one promise. */
#include "tests/fake_backends.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backends.h"
#include "core/memory.h"
#include "core/routine.h"
#include "tests/fake_faults.h"

enum due { IN_RUN, BEFORE_RUN, AFTER_RUN };

/* What the fault does at this point of its life; `call` counts from 1. */
static enum misdeed misdeed_of(const struct fake_hands *hands, enum fault fault, enum due when,
                               int call)
{
    const int code = (int)fault - FIRST_MISDEED;
    if (code < 0)
        return MISDEED_NONE;
    const enum due due = code >= IN_RELEASE ? AFTER_RUN : code >= IN_PREPARE ? BEFORE_RUN : IN_RUN;
    const int first_call = code >= LATE ? hands->late_call : 1;
    if (due != when || (due == IN_RUN && call < first_call))
        return MISDEED_NONE;
    return (enum misdeed)(code % LATE);
}

/* Shared by all slots of one arm. `block` is device memory as large as each output, zero at first:
 * what a backend that writes nothing of its own writes. */
struct arm_state {
    int call_count;
    bool saved; /* the blocks hold what the first call gave */
    void *block[FIB_MAX_TENSORS];
};

struct fib_prepared {
    enum fault fault;
    const struct fake_hands *hands;
    const struct fib_impl *inner;
    struct fib_prepared *inner_prepared;
    struct fib_prepare_args args;
    struct arm_state *state;
};

static const struct fib_impl *find_inner(const char *routine, const char *label)
{
    for (size_t b = 0; b < fib_backend_count; b++)
        for (size_t i = 0; i < fib_backends[b]->impl_count; i++)
            if (strcmp(fib_backends[b]->impls[i].routine, routine) == 0 &&
                strcmp(fib_backends[b]->impls[i].label, label) == 0)
                return &fib_backends[b]->impls[i];
    return NULL;
}

static int find_role(const struct fib_problem *problem, bool written)
{
    for (int t = 0; t < problem->tensor_count; t++)
        if (fib_tensor_is_written(&problem->tensors[t]) == written)
            return t;
    return -1;
}

static enum fib_status misbehave(const struct fake_hands *hands, enum misdeed misdeed,
                                 const struct fib_prepare_args *args, struct fib_stream *stream,
                                 struct fib_error *err)
{
    const struct misdeed_place place = {.device = args->device,
                                        .stream = stream ? stream : args->device->stream,
                                        .data = args->data[find_role(args->problem, true)],
                                        .harm = hands->harm};
    return misdeed_do(misdeed, &place, err);
}

/* ---- life of an arm ---- */

static enum fib_status make_blocks(const struct fib_prepared *p, struct fib_error *err)
{
    const struct fib_problem *const problem = p->args.problem;
    struct fib_device *const device = p->args.device;
    enum fib_status st = FIB_OK;
    if (p->args.first || (p->fault != ZEROS && p->fault != UNWRITTEN && p->fault != STALE))
        return FIB_OK;
    for (int t = 0; t < problem->tensor_count && st == FIB_OK; t++) {
        const size_t bytes = fib_tensor_bytes(&problem->tensors[t]);
        if (!fib_tensor_is_written(&problem->tensors[t]))
            continue;
        st = device->ops->alloc(device, bytes, &p->state->block[t], err);
        if (st == FIB_OK)
            st = device->ops->set_bytes(device, p->state->block[t], 0, bytes, err);
    }
    return st;
}

enum fib_status fake_prepare(const struct fib_prepare_args *args, const struct fake_hands *hands,
                             enum fault fault, struct fib_prepared **prepared,
                             struct fib_error *err)
{
    if (fault == OOM)
        return fib_fail(err, FIB_ERR_OOM, "workspace of 99 GiB does not fit");
    enum fib_status st = FIB_OK;
    if (!args->first)
        st = misbehave(hands, misdeed_of(hands, fault, BEFORE_RUN, 0), args, NULL, err);
    if (st != FIB_OK)
        return st;
    struct fib_prepared *const p = fib_zalloc(sizeof(*p));
    struct fib_prepare_args inner_args = *args;
    inner_args.first = args->first ? args->first->inner_prepared : NULL;
    p->fault = fault;
    p->hands = hands;
    p->args = *args;
    p->inner = find_inner(args->kase->routine->name, hands->inner);
    p->state = args->first ? args->first->state : fib_zalloc(sizeof(*p->state));
    *prepared = p;
    st = make_blocks(p, err);
    if (st == FIB_OK)
        st = p->inner->prepare(&inner_args, &p->inner_prepared, err);
    if (st != FIB_OK)
        fake_release(prepared);
    return st;
}

void fake_release(struct fib_prepared **prepared)
{
    struct fib_prepared *const p = *prepared;
    *prepared = NULL;
    if (!p)
        return;
    p->inner->release(&p->inner_prepared);
    if (!p->args.first) {
        struct fib_device *const device = p->args.device;
        (void)misbehave(p->hands, misdeed_of(p->hands, p->fault, AFTER_RUN, 0), &p->args, NULL,
                        NULL);
        for (int t = 0; t < p->args.problem->tensor_count; t++)
            device->ops->release(device, p->state->block[t],
                                 fib_tensor_bytes(&p->args.problem->tensors[t]));
        free(p->state);
    }
    free(p);
}

/* ---- calls ---- */

static enum fib_status copy(const struct fib_prepared *p, struct fib_stream *stream, void *dst,
                            const void *src, size_t bytes, struct fib_error *err)
{
    struct fib_device *const device = p->args.device;
    return device->ops->copy(device, stream, dst, src, bytes, err);
}

static enum fib_status double_outputs(const struct fib_prepared *p, struct fib_stream *stream,
                                      struct fib_error *err)
{
    enum fib_status st = FIB_OK;
    for (int t = 0; t < p->args.problem->tensor_count && st == FIB_OK; t++) {
        const struct fib_tensor *const tensor = &p->args.problem->tensors[t];
        if (fib_tensor_is_written(tensor))
            st = p->hands->double_all(stream, tensor->dtype, p->args.data[t],
                                      fib_tensor_elems(tensor), err);
    }
    return st;
}

static enum fib_status repeat_first(const struct fib_prepared *p, struct fib_stream *stream,
                                    struct fib_error *err)
{
    enum fib_status st = FIB_OK;
    for (int t = 0; t < p->args.problem->tensor_count && st == FIB_OK; t++) {
        void *const data = p->args.data[t], *const block = p->state->block[t];
        const size_t bytes = fib_tensor_bytes(&p->args.problem->tensors[t]);
        if (block)
            st = p->state->saved ? copy(p, stream, data, block, bytes, err)
                                 : copy(p, stream, block, data, bytes, err);
    }
    p->state->saved = true;
    return st;
}

/* The first output of a call. */
struct output {
    unsigned char *data, *last; /* last: its last element */
    size_t bytes, item_bytes;
    void *block;
};

static struct output output_of(const struct fib_prepared *p)
{
    const int t = find_role(p->args.problem, true);
    const struct fib_tensor *const tensor = &p->args.problem->tensors[t];
    const size_t bytes = fib_tensor_bytes(tensor), item_bytes = fib_dtype_bytes(tensor->dtype);
    unsigned char *const data = p->args.data[t];
    return (struct output){.data = data,
                           .last = data + bytes - item_bytes,
                           .bytes = bytes,
                           .item_bytes = item_bytes,
                           .block = p->state->block[t]};
}

static enum fib_status sabotage(const struct fib_prepared *p, struct fib_stream *stream,
                                struct fib_error *err)
{
    const struct output out = output_of(p);
    switch (p->fault) {
    case LATER:
        return p->state->call_count > 2 ? double_outputs(p, stream, err) : FIB_OK;
    case WRONG:
        return double_outputs(p, stream, err);
    case ZEROS:
        return copy(p, stream, out.data, out.block, out.bytes, err);
    case UNWRITTEN:
        return copy(p, stream, out.last, out.block, out.item_bytes, err);
    case GUARD:
        return p->hands->flip_bit(stream, out.data + out.bytes, err);
    case INPUT:
        return p->hands->flip_bit(stream, p->args.data[find_role(p->args.problem, false)], err);
    case STALE:
        return repeat_first(p, stream, err);
    default:
        return FIB_OK;
    }
}

static double call_ms(enum fault fault)
{
    return fault == ZERO_TIME ? 0.0 : fault == SLOW ? 1.1 : 1.0;
}

enum fib_status fake_run(struct fib_prepared *p, struct fib_stream *stream, struct fib_error *err)
{
    const struct output out = output_of(p);
    const int call = ++p->state->call_count;
    if (p->fault == ERROR || (p->fault == LATE_ERROR && call >= 10))
        return fib_fail(err, FIB_ERR_DEVICE, "the device reported an illegal address");
    enum fib_status st = FIB_OK;
    if (p->fault == UNWRITTEN)
        st = copy(p, stream, out.block, out.last, out.item_bytes, err);
    if (st == FIB_OK)
        st = p->inner->run(p->inner_prepared, stream, err);
    if (st == FIB_OK)
        st = misbehave(p->hands, misdeed_of(p->hands, p->fault, IN_RUN, call), &p->args, stream,
                       err);
    if (st == FIB_OK)
        st = sabotage(p, stream, err);
    if (strcmp(p->args.device->facts.uuid, "fake-0") == 0)
        fib_device_fake_advance(p->args.device, call_ms(p->fault));
    return st;
}

const char *fake_resolved(const struct fib_prepared *p, char *buffer, size_t buffer_bytes)
{
    snprintf(buffer, buffer_bytes, "fake/%d", (int)p->fault);
    return buffer;
}

const char *fake_refuse(const struct fib_case *kase, const struct fib_problem *problem,
                        const struct fib_device *device, char *buffer, size_t buffer_bytes)
{
    (void)kase, (void)problem, (void)device;
    snprintf(buffer, buffer_bytes, "needs a moon phase of %d", 3);
    return buffer;
}

/* ---- on the host ---- */

static enum fib_status flip_bit(struct fib_stream *stream, void *address, struct fib_error *err)
{
    (void)stream, (void)err;
    *(unsigned char *)address ^= 1;
    return FIB_OK;
}

static enum fib_status double_all(struct fib_stream *stream, enum fib_dtype dtype, void *data,
                                  int64_t count, struct fib_error *err)
{
    (void)stream, (void)err;
    for (int64_t i = 0; i < count; i++)
        fib_dtype_store(dtype, data, (size_t)i, 2.0 * fib_dtype_load(dtype, data, (size_t)i));
    return FIB_OK;
}

static const struct fake_hands hands = {.inner = "cpu",
                                        .late_call = 6,
                                        .flip_bit = flip_bit,
                                        .double_all = double_all,
                                        .harm = misdeed_harm_host};

/* Need the scripted clock, or the fake device. */
#define HOST_FAULTS(X, rest)                                                                       \
    X(rest, "fake-slow", slow, SLOW)                                                               \
    X(rest, "fake-zero-time", zero_time, ZERO_TIME)                                                \
    X(rest, "fake-lose", lose, FIRST_MISDEED + LATE + MISDEED_LOSE)                                \
    X(rest, "fake-early-lose", early_lose, FIRST_MISDEED + IN_PREPARE + MISDEED_LOSE)              \
    X(rest, "fake-early-break", early_break, FIRST_MISDEED + IN_PREPARE + MISDEED_BREAK)           \
    X(rest, "fake-parting-break", parting_break, FIRST_MISDEED + IN_RELEASE + MISDEED_BREAK)       \
    X(rest, "fake-break", broken, FIRST_MISDEED + MISDEED_BREAK_TOLD)                              \
    X(rest, "fake-late-break", late_break, FIRST_MISDEED + LATE + MISDEED_BREAK_TOLD)

FAKE_FAULTS(FAKE_PREPARE, )
HOST_FAULTS(FAKE_PREPARE, )

#define ROW(routine, label, name, which)                                                           \
    FAKE_ROW(routine, FIB_DEVICE_CPU, label, NULL, prepare_##name),
#define ROWS(routine)                                                                              \
    FAKE_FAULTS(ROW, routine)                                                                      \
    HOST_FAULTS(ROW, routine)                                                                      \
    FAKE_ROW(routine, FIB_DEVICE_CPU, "fake-refuse", fake_refuse, prepare_good)

static const struct fib_impl impls[] = {ROWS("rmsnorm"), ROWS("fused_add_rmsnorm"),
                                        ROWS("rmsnorm_quant"), ROWS("mm_bf16")};

const struct fib_backend fib_backend_fake = FIB_BACKEND("fake", impls);

/* ---- registry ---- */

void fake_registry_add(struct fake_registry *fakes, const struct fib_backend *backend)
{
    const size_t most_backends = sizeof(fakes->backends) / sizeof(fakes->backends[0]);
    const size_t most_labels = sizeof(fakes->labels) / sizeof(fakes->labels[0]);
    assert(fakes->registry.backend_count < most_backends);
    fakes->backends[fakes->registry.backend_count++] = backend;
    for (size_t i = 0; i < backend->impl_count; i++) {
        const char *const label = backend->impls[i].label;
        if (fib_registry_label(&fakes->registry, label))
            continue;
        assert(fakes->registry.label_count < most_labels);
        fakes->labels[fakes->registry.label_count++] =
            (struct fib_label){.name = label, .meaning = "a test's backend"};
    }
}

void fake_registry_init(struct fake_registry *fakes, const struct fib_registry *base)
{
    assert(base->backend_count <= sizeof(fakes->backends) / sizeof(fakes->backends[0]));
    assert(base->label_count <= sizeof(fakes->labels) / sizeof(fakes->labels[0]));
    memcpy(fakes->backends, base->backends, base->backend_count * sizeof(fakes->backends[0]));
    memcpy(fakes->labels, base->labels, base->label_count * sizeof(fakes->labels[0]));
    fakes->registry = *base;
    fakes->registry.backends = fakes->backends;
    fakes->registry.labels = fakes->labels;
    fake_registry_add(fakes, &fib_backend_fake);
}
