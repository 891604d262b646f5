/* One implementation made ready for a case: a prepared state per ring slot, and its fate. */
#ifndef FIB_CORE_ARM_H
#define FIB_CORE_ARM_H

#include "core/candidates.h"
#include "core/judge.h"
#include "core/sample.h"

struct fib_session;

struct fib_run_arm {
    struct fib_session *session; /* borrowed */
    const struct fib_candidate *candidate;
    const struct fib_impl *impl;
    struct fib_device *device;        /* borrowed */
    struct fib_tensors *tensors;      /* borrowed, shared with the other arms */
    struct fib_prepared **prepared;   /* [prepared_count] one per slot */
    uint32_t prepared_count;
    char resolved[96];
    enum fib_result_status status;
    char reason[FIB_ERROR_CHARS];
    struct fib_verification check;
    bool checked;
    uint64_t output_checksum;
    size_t series_index;              /* in the samples; only when timed */
    bool timed;
    bool call_failed;                 /* its call reported an error while it was timed */
    bool skipped;                     /* it has its row from before: none is made now */
};

/* Prepares every slot. On failure the arm's status and reason say why (UNSUPPORTED, OOM, ERROR). */
void fib_run_arm_open(struct fib_run_arm *arm, const struct fib_case *kase,
                      const struct fib_problem *problem, struct fib_device *device,
                      struct fib_tensors *tensors);
void fib_run_arm_close(struct fib_run_arm *arm);

/* True while nothing has gone wrong with it. */
bool fib_run_arm_is_sound(const struct fib_run_arm *arm);
/* First trouble wins: later ones do not change status or reason. */
void fib_run_arm_fail(struct fib_run_arm *arm, enum fib_result_status status, const char *reason);
/* Maps an error of a call or of memory to a result status: CRASHED when it cost the device. */
void fib_run_arm_fail_error(struct fib_run_arm *arm, const struct fib_error *err);

/* Callbacks for windows and checks; context is the arm. */
enum fib_status fib_run_arm_call(void *arm, struct fib_stream *stream, uint32_t slot,
                                 struct fib_error *err);
enum fib_status fib_run_arm_reset(void *arm, struct fib_stream *stream, const uint32_t *slots,
                                  uint32_t slot_count, struct fib_error *err);

#endif
