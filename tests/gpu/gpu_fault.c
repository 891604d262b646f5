/* A broken context, a missing GPU, a number that does not exist: each in a process of its own. */
#include "gpu_tests.h"

#include "gpu/device_cuda.h"

enum { GOOD = 42 };

static int complain(const char *what, enum fib_status st, const struct fib_error *err)
{
    printf("%s: status %d, '%s'\n", what, (int)st, err->text);
    return 1;
}

/* Writes to an address that belongs to nobody; from then on every call must say so. */
static int child_illegal(struct fib_device *device)
{
    const struct fib_fill fill = {.kind = FIB_FILL_CONSTANT};
    struct fib_error fill_err = {0}, sync_err = {0}, later_err = {0};
    void *block = NULL;
    enum fib_status st = device->ops->fill(device, &fill, FIB_F32, 1, 0, 1 << 20,
                                           (void *)(uintptr_t)0x10000, &fill_err);
    if (st != FIB_OK)
        return complain("the launch itself failed", st, &fill_err);
    st = device->ops->synchronize(device, NULL, &sync_err);
    if (st != FIB_ERR_DEVICE || !strstr(sync_err.text, "cudaErrorIllegalAddress"))
        return complain("synchronize", st, &sync_err);
    if (!device->lost)
        return complain("the device is not marked as lost", st, &sync_err);
    st = device->ops->alloc(device, 256, &block, &later_err);
    if (st != FIB_ERR_DEVICE || !strstr(later_err.text, "lost to this process since") ||
        !strstr(later_err.text, "cudaErrorIllegalAddress"))
        return complain("alloc after the error", st, &later_err);
    if (device->ops->free_bytes(device) != 0)
        return complain("free_bytes after the error", st, &later_err);
    printf("%s\n", later_err.text);
    return GOOD;
}

int gpu_test_child_main(const char *name)
{
    struct fib_error err = {0};
    struct fib_device *device = NULL;
    struct fib_pool *pool = fib_pool_create(1);
    int exit_status = 1;
    const bool ordinal = strcmp(name, "ordinal") == 0, hidden = strcmp(name, "hidden") == 0;
    const enum fib_status st = fib_device_cuda_open(pool, ordinal ? 99 : 0, &device, &err);
    if (ordinal)
        exit_status = st == FIB_ERR_USAGE && strstr(err.text, "there is no GPU 99; allowed: 0 to")
                          ? GOOD
                          : complain(name, st, &err);
    else if (hidden)
        exit_status = st == FIB_ERR_UNSUPPORTED && strstr(err.text, "CUDA_VISIBLE_DEVICES")
                          ? GOOD
                          : complain(name, st, &err);
    else if (st != FIB_OK)
        exit_status = complain("open", st, &err);
    else
        exit_status = child_illegal(device);
    fib_device_close(&device);
    fib_pool_free(&pool);
    return exit_status;
}

static void expect_child(struct gpu_test *t, const char *name, const char *visible_devices)
{
    char output[2048];
    const int status = gpu_test_child(t, name, visible_devices, output, sizeof(output));
    GPU_CHECK(t, status == GOOD, "child '%s' ended with %d: %s", name, status, output);
}

static void test_sticky(struct gpu_test *t)
{
    struct fib_error err = {0};
    expect_child(t, "illegal", NULL);
    /* The other process's error is not ours. */
    GPU_OK(t, t->device->ops->synchronize(t->device, NULL, &err), &err);
}

static void test_hidden(struct gpu_test *t)
{
    expect_child(t, "hidden", "");
    expect_child(t, "hidden", "-1");
}

static void test_ordinal(struct gpu_test *t)
{
    expect_child(t, "ordinal", NULL);
}

static const struct gpu_test_row rows[] = {
    {"sticky_error", test_sticky, true},
    {"hidden_gpus", test_hidden, true},
    {"ordinal", test_ordinal, true},
};
const struct gpu_suite gpu_suite_fault = {"fault", rows, sizeof(rows) / sizeof(rows[0])};
