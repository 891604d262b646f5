/* One function per way to break a process. */
#include "tests/misdeeds.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/host.h"

/* Volatile throughout: the compiler would otherwise see through it. */
static volatile int never = 0;

static void read_null(void)
{
    const volatile int *volatile address = NULL;
    never += *address;
}

/* Above the user half of the address space nothing is ever mapped. */
static void write_far(void *data)
{
    volatile unsigned char *volatile address = data;
    address[UINT64_C(1) << 62] = 1;
}

static int recurse(int depth)
{
    volatile char frame[4096];
    frame[depth % 4096] = 1;
    if (never)
        return 0;
    return recurse(depth + 1) + frame[(depth + 1) % 4096];
}

static void hang(bool busy)
{
    const struct timespec nap = {.tv_sec = 3600};
    while (!never)
        if (!busy)
            nanosleep(&nap, NULL);
}

static uint64_t address_space_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;
    if (!file || fscanf(file, "%lu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (uint64_t)pages * 4096;
}

enum { WORKSPACE_BYTES = 32 << 20, SPARE_BYTES = 128 << 20 };

static bool is_fake(const struct fib_device *device)
{
    return strcmp(device->facts.uuid, "fake-0") == 0;
}

/* Of the host's memory "all there is" is made small first: a limit hurts nobody but this process.
 * What is left at the end is less than a workspace. */
static enum fib_status take_all(struct fib_device *device, struct fib_error *err)
{
    const struct rlimit limit = {.rlim_cur = address_space_bytes() + SPARE_BYTES,
                                 .rlim_max = RLIM_INFINITY};
    if (device->host_memory && !is_fake(device) && setrlimit(RLIMIT_AS, &limit) != 0)
        return FIB_ERR_INTERNAL;
    for (uint64_t bytes = device->ops->free_bytes(device); bytes > WORKSPACE_BYTES;) {
        void *piece = NULL;
        if (device->ops->alloc(device, bytes, &piece, NULL) != FIB_OK)
            bytes /= 2;
    }
    enum fib_status st = FIB_OK;
    while (st == FIB_OK) {
        void *piece = NULL;
        st = device->ops->alloc(device, WORKSPACE_BYTES, &piece, err);
    }
    return st;
}

static enum fib_status take_too_much(struct fib_device *device, struct fib_error *err)
{
    void *block = NULL;
    return device->ops->alloc(device, 16 * device->facts.memory_bytes, &block, err);
}

static enum fib_status take_and_return(struct fib_device *device, struct fib_error *err)
{
    void *block = NULL;
    const enum fib_status st = device->ops->alloc(device, WORKSPACE_BYTES, &block, err);
    device->ops->release(device, block, st == FIB_OK ? WORKSPACE_BYTES : 0);
    return st;
}

static enum fib_status break_device(struct fib_device *device, bool told, struct fib_error *err)
{
    if (!is_fake(device))
        return fib_fail(err, FIB_ERR_INTERNAL, "only the fake device breaks on demand");
    fib_device_fake_break(device);
    return told ? fib_fail(err, FIB_ERR_DEVICE, "launch refused: illegal memory access") : FIB_OK;
}

static void make_noise(void)
{
    static const char line[] = "\001\002\003 [PERF] noise :: median time 1.0 ms\n";
    printf("%s", line);
    if (write(STDOUT_FILENO, line, sizeof(line)) < 0)
        perror("noise");
}

enum fib_status misdeed_harm_host(enum misdeed misdeed, struct fib_stream *stream, void *data,
                                  struct fib_error *err)
{
    (void)stream;
    if (misdeed != MISDEED_FAR)
        return fib_fail(err, FIB_ERR_INTERNAL, "misdeed %d needs a GPU", (int)misdeed);
    write_far(data);
    return FIB_OK;
}

/* Ways to end this process, or never to come back. */
static void harm_process(enum misdeed misdeed)
{
    switch (misdeed) {
    case MISDEED_SEGV:
        read_null();
        break;
    case MISDEED_ABORT:
        abort();
    case MISDEED_EXIT0:
        exit(0);
    case MISDEED_EXIT3:
        exit(3);
    case MISDEED_STACK:
        never = recurse(0);
        break;
    case MISDEED_KILL:
        raise(SIGKILL);
        break;
    case MISDEED_SLEEP:
    case MISDEED_SPIN:
        hang(misdeed == MISDEED_SPIN);
        break;
    case MISDEED_NOISE:
        make_noise();
        break;
    default:
        break;
    }
}

static bool is_harmless(enum misdeed misdeed)
{
    return misdeed == MISDEED_NONE || misdeed == MISDEED_NEED || misdeed == MISDEED_NOISE ||
           misdeed == MISDEED_WAIT;
}

enum fib_status misdeed_do(enum misdeed misdeed, const struct misdeed_place *place,
                           struct fib_error *err)
{
    struct fib_device *const device = place->device;
    if (!is_harmless(misdeed))
        fprintf(stderr, "misdeed at %.6f\n", (double)fib_host_now_ns() * 1e-9);
    switch (misdeed) {
    case MISDEED_HOG:
        return take_all(device, err);
    case MISDEED_GREED:
        return take_too_much(device, err);
    case MISDEED_NEED:
        return take_and_return(device, err);
    case MISDEED_LOSE:
        device->lost = true;
        return fib_fail(err, FIB_ERR_DEVICE, "an illegal memory access was encountered");
    case MISDEED_BREAK:
    case MISDEED_BREAK_TOLD:
        return break_device(device, misdeed == MISDEED_BREAK_TOLD, err);
    default:
        break;
    }
    if (misdeed >= MISDEED_FAR)
        return place->harm(misdeed, place->stream, place->data, err);
    harm_process(misdeed);
    return FIB_OK;
}
