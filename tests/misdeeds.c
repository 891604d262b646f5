/* One function per way to break a process. */
#include "tests/misdeeds.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

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

/* "All there is" is made small first: a limit hurts nobody but this process. */
static enum fib_status take_all(struct fib_device *device, struct fib_error *err)
{
    enum { PIECE_BYTES = 32 << 20, SPARE_BYTES = 128 << 20 };
    const struct rlimit limit = {.rlim_cur = address_space_bytes() + SPARE_BYTES,
                                 .rlim_max = RLIM_INFINITY};
    enum fib_status st = setrlimit(RLIMIT_AS, &limit) == 0 ? FIB_OK : FIB_ERR_INTERNAL;
    while (st == FIB_OK) {
        void *piece = NULL;
        st = device->ops->alloc(device, PIECE_BYTES, &piece, err);
    }
    return st;
}

static void make_noise(void)
{
    static const char line[] = "\001\002\003 [PERF] noise :: median time 1.0 ms\n";
    printf("%s", line);
    if (write(STDOUT_FILENO, line, sizeof(line)) < 0)
        perror("noise");
}

enum fib_status misdeed_do(enum misdeed misdeed, struct fib_device *device, void *data,
                           struct fib_error *err)
{
    switch (misdeed) {
    case MISDEED_SEGV:
        read_null();
        break;
    case MISDEED_FAR:
        write_far(data);
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
    case MISDEED_HOG:
        return take_all(device, err);
    case MISDEED_NOISE:
        make_noise();
        break;
    case MISDEED_LOSE:
        device->lost = true;
        return fib_fail(err, FIB_ERR_DEVICE, "an illegal memory access was encountered");
    case MISDEED_NONE:
        break;
    }
    return FIB_OK;
}
