/* Prepares, calls and releases one implementation over the slots of a case. */
#include "core/arm.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/memory.h"

bool fib_run_arm_is_sound(const struct fib_run_arm *arm)
{
    return arm->status == FIB_RESULT_PASSED;
}

void fib_run_arm_fail(struct fib_run_arm *arm, enum fib_result_status status, const char *reason)
{
    if (!fib_run_arm_is_sound(arm))
        return;
    arm->status = status;
    snprintf(arm->reason, sizeof(arm->reason), "%s", reason);
}

/* A backend passes on what its library says, and that may be news of a launch that went wrong long
 * before: only waiting for everything tells whether it cost the device. Asked now, so that nobody
 * takes the answer for the fault of whoever runs next. */
static bool cost_the_device(const struct fib_run_arm *arm)
{
    struct fib_device *const device = arm->device;
    if (device && !device->lost)
        (void)device->ops->synchronize(device, NULL, NULL);
    return device && device->lost;
}

void fib_run_arm_fail_error(struct fib_run_arm *arm, const struct fib_error *err)
{
    enum fib_result_status status = FIB_RESULT_ERROR;
    if (err->status == FIB_ERR_OOM)
        status = FIB_RESULT_OOM;
    else if (err->status == FIB_ERR_UNSUPPORTED)
        status = FIB_RESULT_UNSUPPORTED;
    else if (err->status == FIB_ERR_TIMEOUT)
        status = FIB_RESULT_TIMEOUT;
    if (cost_the_device(arm))
        status = FIB_RESULT_CRASHED;
    fib_run_arm_fail(arm, status, err->text);
}

static enum fib_status prepare_slot(struct fib_run_arm *arm, struct fib_prepare_args *args,
                                    uint32_t slot, struct fib_error *err)
{
    args->slot = slot;
    args->first = slot > 0 ? arm->prepared[0] : NULL;
    for (int t = 0; t < args->problem->tensor_count; t++)
        args->data[t] = fib_tensors_address(arm->tensors, slot, t);
    return arm->impl->prepare(args, &arm->prepared[slot], err);
}

/* Waits in the end, so that what preparing has enqueued goes wrong here and not elsewhere. */
static enum fib_status prepare_slots(struct fib_run_arm *arm, struct fib_prepare_args *args,
                                     uint32_t slot_count, struct fib_error *err)
{
    for (uint32_t slot = 0; slot < slot_count; slot++) {
        const enum fib_status st = prepare_slot(arm, args, slot, err);
        if (st != FIB_OK)
            return st;
        arm->prepared_count = slot + 1;
    }
    return arm->device->ops->synchronize(arm->device, NULL, err);
}

void fib_run_arm_open(struct fib_run_arm *arm, const struct fib_case *kase,
                      const struct fib_problem *problem, struct fib_device *device,
                      struct fib_tensors *tensors)
{
    struct fib_error err = {0};
    struct fib_prepare_args args = {.impl = arm->candidate->impl,
                                    .kase = kase,
                                    .problem = problem,
                                    .device = device,
                                    .pool = device->pool};
    const uint32_t slot_count = fib_tensors_slot_count(tensors);
    arm->device = device;
    arm->tensors = tensors;
    arm->impl = arm->candidate->impl;
    arm->prepared = fib_zalloc_array(slot_count, sizeof(arm->prepared[0]));
    if (prepare_slots(arm, &args, slot_count, &err) != FIB_OK) {
        fib_run_arm_fail_error(arm, &err);
        fib_run_arm_close(arm); /* the others may need its memory */
        return;
    }
    char buffer[sizeof(arm->resolved)];
    snprintf(arm->resolved, sizeof(arm->resolved), "%s",
             arm->impl->resolved ? arm->impl->resolved(arm->prepared[0], buffer, sizeof(buffer))
                                 : arm->impl->label);
}

void fib_run_arm_close(struct fib_run_arm *arm)
{
    /* Slot 0 owns what the others share, so it goes last. */
    while (arm->prepared_count > 0)
        arm->impl->release(&arm->prepared[--arm->prepared_count]);
    free(arm->prepared);
    arm->prepared = NULL;
}

enum fib_status fib_run_arm_call(void *context, struct fib_stream *stream, uint32_t slot,
                                 struct fib_error *err)
{
    struct fib_run_arm *const arm = context;
    const enum fib_status st =
        arm->impl->run(arm->prepared[slot], stream ? stream : arm->device->stream, err);
    /* The last call counts: one that failed only while it was captured runs on without a graph. */
    arm->call_failed = st != FIB_OK;
    return st;
}

enum fib_status fib_run_arm_reset(void *context, struct fib_stream *stream, const uint32_t *slots,
                                  uint32_t slot_count, struct fib_error *err)
{
    struct fib_run_arm *const arm = context;
    return fib_tensors_restore_slots(arm->tensors, stream, slots, slot_count, err);
}
