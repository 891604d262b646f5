/* Test-only backends: a sound implementation of a few routines with one fault each. */
#ifndef FIB_TESTS_FAKE_BACKENDS_H
#define FIB_TESTS_FAKE_BACKENDS_H

#include <stddef.h>

#include "core/registry.h"

/* Labels (on the host rmsnorm, fused_add_rmsnorm, rmsnorm_quant, mm_bf16):
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
 *   fake-needy      right, but prepare() fails unless 32 MiB of device memory are free
 *   fake-refuse     refuses with a reason
 *   fake-zero-time  right, but takes no time on the fake clock
 *
 * and these, which harm the process or the device (tests/misdeeds.h); "late" in a call that is
 * timed, "early" in prepare():
 *   fake-segv, fake-late-segv, fake-early-segv   fake-far   fake-abort
 *   fake-exit0   fake-exit3 (late)   fake-stack   fake-kill (late)
 *   fake-sleep   fake-spin (late)    fake-hog (early)   fake-noise
 *   fake-lose (late), fake-early-lose
 *   fake-break, fake-late-break (reported), fake-early-break, fake-parting-break (not, the last in
 *   release()); on the fake device */
extern const struct fib_backend fib_backend_fake;
/* The same for rmsnorm on a GPU, and what only a GPU can suffer; in tests/gpu/fake_cuda.c, which
 * fault-bench has. No fake-slow, fake-zero-time, fake-lose, fake-break; instead
 *   fake-late-far, fake-early-far, fake-parting-far (in release())
 *   fake-misaligned   fake-trap   fake-assert   fake-deep
 *   fake-loop, fake-late-loop, fake-early-loop, fake-parting-loop
 *   fake-oversized    a launch that no GPU allows
 *   fake-greedy       prepare() asks for more memory than there is
 *   fake-waiting      right, but cannot be captured into a graph */
extern const struct fib_backend fib_backend_fake_cuda;

/* A registry with the fakes behind its own rows; refers to itself, so it is not copied. */
struct fake_registry {
    struct fib_registry registry;
    const struct fib_backend *backends[64];
    struct fib_label labels[160];
};
void fake_registry_init(struct fake_registry *fakes, const struct fib_registry *base);
/* One backend more, and the labels of its rows that nobody knew. */
void fake_registry_add(struct fake_registry *fakes, const struct fib_backend *backend);

#endif
