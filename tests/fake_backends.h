/* Test-only backends: the cpu implementation of a few routines with one fault each. */
#ifndef FIB_TESTS_FAKE_BACKENDS_H
#define FIB_TESTS_FAKE_BACKENDS_H

#include <stddef.h>

#include "core/registry.h"

/* Labels (routines rmsnorm, fused_add_rmsnorm, rmsnorm_quant, mm_bf16):
 *   fake-good       right, 1.0 ms a call on the fake clock
 *   fake-slow       right, 1.1 ms
 *   fake-wrong      every output element doubled
 *   fake-zeros      outputs all zero
 *   fake-unwritten  leaves the last output element as it was
 *   fake-guard      writes one byte past the first output
 *   fake-input      changes one byte of the first input
 *   fake-later      right twice, wrong from the third call on
 *   fake-stale      repeats the result of its first call for ever
 *   fake-error      run() reports a device error
 *   fake-late-error the same from the tenth call on
 *   fake-oom        prepare() reports no memory
 *   fake-refuse     refuses with a reason
 *   fake-zero-time  right, but takes no time on the fake clock
 *
 * and these, which harm the process (tests/misdeeds.h); "late" from the sixth call on, the first
 * one that is timed when there is no warm-up, "early" in prepare():
 *   fake-segv, fake-late-segv, fake-early-segv   fake-far   fake-abort
 *   fake-exit0   fake-exit3 (late)   fake-stack   fake-kill (late)
 *   fake-sleep   fake-spin (late)    fake-hog (early)   fake-noise
 *   fake-lose (late), fake-early-lose */
extern const struct fib_backend fib_backend_fake;

/* A registry with the fakes behind its own rows; refers to itself, so it is not copied. */
struct fake_registry {
    struct fib_registry registry;
    const struct fib_backend *backends[64];
    struct fib_label labels[160];
};
void fake_registry_init(struct fake_registry *fakes, const struct fib_registry *base);

#endif
