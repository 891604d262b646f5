/* Memory, filling and copying for devices whose memory is the host's. */
#include "core/device_host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/memory.h"
#include "core/pool.h"

enum {
    ALIGN_BYTES = 256,
    PAGE_BYTES = 4096,
    HUGE_PAGE_BYTES = 2 << 20,
    MAP_FROM_BYTES = 4 << 20,    /* smaller blocks come from malloc */
    SHARE_FROM_BYTES = 256 << 10 /* below this a second thread costs more than it gains */
};

static size_t round_up(size_t value, size_t step)
{
    return (value + step - 1) / step * step;
}

static void touch_pages(void *context, int64_t first, int64_t last)
{
    volatile unsigned char *bytes = context;
    for (int64_t page = first; page < last; page++)
        bytes[page * PAGE_BYTES] = 0;
}

/* Aligned to huge pages and touched by all threads: first-touch faults are most of the time that a
 * big buffer costs, and would otherwise fall into the first timed calls. */
static void *map_block(struct fib_pool *pool, size_t bytes)
{
    const size_t length = round_up(bytes, PAGE_BYTES);
    if (length > SIZE_MAX / 2)
        return NULL;
    unsigned char *base = mmap(NULL, length + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    const size_t head = (size_t)(-(uintptr_t)base & (HUGE_PAGE_BYTES - 1));
    if (head > 0)
        munmap(base, head);
    if (head < HUGE_PAGE_BYTES)
        munmap(base + head + length, HUGE_PAGE_BYTES - head);
    madvise(base + head, length, MADV_HUGEPAGE);
    fib_pool_for(pool, (int64_t)(length / PAGE_BYTES), HUGE_PAGE_BYTES / PAGE_BYTES, touch_pages,
                 base + head);
    return base + head;
}

enum fib_status fib_host_alloc(struct fib_device *device, size_t bytes, void **address,
                               struct fib_error *err)
{
    if (bytes == 0)
        bytes = 1;
    if (bytes >= MAP_FROM_BYTES)
        *address = map_block(device->pool, bytes);
    else
        *address = aligned_alloc(ALIGN_BYTES, round_up(bytes, ALIGN_BYTES));
    if (!*address)
        return fib_fail(err, FIB_ERR_OOM, "the system refuses a block of %zu bytes", bytes);
    return FIB_OK;
}

void fib_host_release(struct fib_device *device, void *address, size_t bytes)
{
    (void)device;
    if (!address)
        return;
    if (bytes >= MAP_FROM_BYTES)
        munmap(address, round_up(bytes, PAGE_BYTES));
    else
        free(address);
}

struct fill_job {
    const struct fib_fill *fill;
    enum fib_dtype dtype;
    uint64_t key, first;
    unsigned char *dst;
};

static void fill_part(void *context, int64_t first, int64_t last)
{
    const struct fill_job *job = context;
    fib_fill_range(job->fill, job->dtype, job->key, job->first + (uint64_t)first,
                   (size_t)(last - first), job->dst + (size_t)first * fib_dtype_bytes(job->dtype));
}

enum fib_status fib_host_fill(struct fib_device *device, const struct fib_fill *fill,
                              enum fib_dtype dtype, uint64_t key, uint64_t first, size_t count,
                              void *dst, struct fib_error *err)
{
    (void)err;
    struct fill_job job = {.fill = fill, .dtype = dtype, .key = key, .first = first, .dst = dst};
    fib_pool_for(device->pool, (int64_t)count, 4096, fill_part, &job);
    return FIB_OK;
}

struct bytes_job {
    unsigned char *dst;
    const unsigned char *src; /* NULL: set to `byte` */
    int byte;
};

static void bytes_part(void *context, int64_t first, int64_t last)
{
    const struct bytes_job *job = context;
    const size_t count = (size_t)(last - first);
    if (job->src)
        memcpy(job->dst + first, job->src + first, count);
    else
        memset(job->dst + first, job->byte, count);
}

enum fib_status fib_host_set_bytes(struct fib_device *device, void *dst, int byte, size_t bytes,
                                   struct fib_error *err)
{
    (void)err;
    struct bytes_job job = {.dst = dst, .byte = byte};
    fib_pool_for(device->pool, (int64_t)bytes, SHARE_FROM_BYTES, bytes_part, &job);
    return FIB_OK;
}

enum fib_status fib_host_copy(struct fib_device *device, struct fib_stream *stream, void *dst,
                              const void *src, size_t bytes, struct fib_error *err)
{
    (void)stream;
    (void)err;
    struct bytes_job job = {.dst = dst, .src = src};
    fib_pool_for(device->pool, (int64_t)bytes, SHARE_FROM_BYTES, bytes_part, &job);
    return FIB_OK;
}

enum fib_status fib_host_read(struct fib_device *device, void *host, const void *src, size_t bytes,
                              struct fib_error *err)
{
    return fib_host_copy(device, NULL, host, src, bytes, err);
}

enum fib_status fib_host_write(struct fib_device *device, void *dst, const void *host, size_t bytes,
                               struct fib_error *err)
{
    return fib_host_copy(device, NULL, dst, host, bytes, err);
}

enum fib_status fib_host_checksum(struct fib_device *device, const void *src, size_t bytes,
                                  uint64_t *sum, struct fib_error *err)
{
    (void)err;
    *sum = fib_checksum(device->pool, src, bytes);
    return FIB_OK;
}

enum fib_status fib_host_stream_create(struct fib_device *device, struct fib_stream **stream,
                                       struct fib_error *err)
{
    (void)device;
    (void)err;
    *stream = NULL;
    return FIB_OK;
}

void fib_host_stream_destroy(struct fib_device *device, struct fib_stream **stream)
{
    (void)device;
    *stream = NULL;
}

enum fib_status fib_host_synchronize(struct fib_device *device, struct fib_stream *stream,
                                     struct fib_error *err)
{
    (void)device;
    (void)stream;
    (void)err;
    return FIB_OK;
}

enum fib_status fib_host_window_create(struct fib_device *device,
                                       const struct fib_window_spec *spec,
                                       struct fib_window **window, struct fib_error *err)
{
    *window = NULL;
    const char *refusal = fib_device_timer_refusal(device, spec->timer);
    if (refusal)
        return fib_fail(err, FIB_ERR_UNSUPPORTED, "--timer %s: %s", fib_timer_name(spec->timer),
                        refusal);
    const size_t slot_bytes = spec->call_count * sizeof(*spec->slots);
    struct fib_window *made = fib_zalloc(sizeof(*made) + slot_bytes);
    made->device = device;
    made->spec = *spec;
    memcpy(made->slots, spec->slots, slot_bytes);
    made->spec.slots = made->slots;
    *window = made;
    return FIB_OK;
}

void fib_host_window_destroy(struct fib_window **window)
{
    free(*window);
    *window = NULL;
}
