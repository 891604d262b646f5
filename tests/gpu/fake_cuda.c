/* The fake backends on a GPU: the norm kernels wrapped, with a fault each. */
#include "gpu/stream.h"
#include "tests/fake_backends.h"
#include "tests/fake_faults.h"
#include "tests/gpu/fault_kernels.h"

/* From any address that a GPU gives out this leads to one that it never gives out. */
static const uint64_t far_bytes = UINT64_C(1) << 48;

static enum fib_status flip_bit(struct fib_stream *stream, void *address, struct fib_error *err)
{
    return fib_cuda_launched(fault_flip_bit(fib_cuda_stream(stream), address), "flipping a bit",
                             err);
}

static enum fib_status double_all(struct fib_stream *stream, enum fib_dtype dtype, void *data,
                                  int64_t count, struct fib_error *err)
{
    const enum fault_type type = dtype == FIB_F32   ? FAULT_F32
                                 : dtype == FIB_F16 ? FAULT_F16
                                                    : FAULT_BF16;
    return fib_cuda_launched(fault_double_all(fib_cuda_stream(stream), type, data, count),
                             "doubling the output", err);
}

/* Error code of the launch. */
static int launch(enum misdeed misdeed, struct CUstream_st *stream, void *data)
{
    switch (misdeed) {
    case MISDEED_FAR:
        return fault_store(stream, (uint64_t)(uintptr_t)data + far_bytes);
    case MISDEED_MISALIGNED:
        return fault_store(stream, (uint64_t)(uintptr_t)data + 1);
    case MISDEED_TRAP:
        return fault_trap(stream);
    case MISDEED_ASSERT:
        return fault_assert(stream);
    case MISDEED_DEEP:
        return fault_deep(stream);
    case MISDEED_LOOP:
        return fault_loop(stream, data);
    case MISDEED_OVERSIZED:
        return fault_oversized(stream);
    case MISDEED_WAIT:
        return fault_wait(stream);
    default:
        return 0;
    }
}

static enum fib_status harm(enum misdeed misdeed, struct fib_stream *stream, void *data,
                            struct fib_error *err)
{
    return fib_cuda_launched(launch(misdeed, fib_cuda_stream(stream), data), "launching a misdeed",
                             err);
}

/* Two calls are checked; the third is captured, and runs in every window. */
static const struct fake_hands hands = {
    .inner = "cuda", .late_call = 3, .flip_bit = flip_bit, .double_all = double_all, .harm = harm};

#define CUDA_FAULTS(X, rest)                                                                       \
    X(rest, "fake-late-far", late_far, FIRST_MISDEED + LATE + MISDEED_FAR)                         \
    X(rest, "fake-early-far", early_far, FIRST_MISDEED + IN_PREPARE + MISDEED_FAR)                 \
    X(rest, "fake-parting-far", parting_far, FIRST_MISDEED + IN_RELEASE + MISDEED_FAR)             \
    X(rest, "fake-misaligned", misaligned, FIRST_MISDEED + MISDEED_MISALIGNED)                     \
    X(rest, "fake-trap", trap, FIRST_MISDEED + MISDEED_TRAP)                                       \
    X(rest, "fake-assert", assert, FIRST_MISDEED + MISDEED_ASSERT)                                 \
    X(rest, "fake-deep", deep, FIRST_MISDEED + MISDEED_DEEP)                                       \
    X(rest, "fake-loop", loop, FIRST_MISDEED + MISDEED_LOOP)                                       \
    X(rest, "fake-late-loop", late_loop, FIRST_MISDEED + LATE + MISDEED_LOOP)                      \
    X(rest, "fake-early-loop", early_loop, FIRST_MISDEED + IN_PREPARE + MISDEED_LOOP)              \
    X(rest, "fake-parting-loop", parting_loop, FIRST_MISDEED + IN_RELEASE + MISDEED_LOOP)          \
    X(rest, "fake-oversized", oversized, FIRST_MISDEED + MISDEED_OVERSIZED)                        \
    X(rest, "fake-greedy", greedy, FIRST_MISDEED + IN_PREPARE + MISDEED_GREED)                     \
    X(rest, "fake-waiting", waiting, FIRST_MISDEED + MISDEED_WAIT)

FAKE_FAULTS(FAKE_PREPARE, )
CUDA_FAULTS(FAKE_PREPARE, )

#define ROW(routine, label, name, which)                                                           \
    FAKE_ROW(routine, FIB_DEVICE_CUDA, label, NULL, prepare_##name),

static const struct fib_impl impls[] = {FAKE_FAULTS(ROW, "rmsnorm") CUDA_FAULTS(
    ROW, "rmsnorm") FAKE_ROW("rmsnorm", FIB_DEVICE_CUDA, "fake-refuse", fake_refuse, prepare_good)};

const struct fib_backend fib_backend_fake_cuda = FIB_BACKEND("fake_cuda", impls);
