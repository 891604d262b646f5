/* Device operations on host memory, shared by the cpu and the fake device. Work is spread over the
 * device's pool; everything is done when a function returns, so streams are nothing. */
#ifndef FIB_CORE_DEVICE_HOST_H
#define FIB_CORE_DEVICE_HOST_H

#include "core/device.h"

enum fib_status fib_host_alloc(struct fib_device *device, size_t bytes, void **address,
                               struct fib_error *err);
void fib_host_release(struct fib_device *device, void *address, size_t bytes);
enum fib_status fib_host_fill(struct fib_device *device, const struct fib_fill *fill,
                              enum fib_dtype dtype, uint64_t key, uint64_t first, size_t count,
                              void *dst, struct fib_error *err);
enum fib_status fib_host_set_bytes(struct fib_device *device, void *dst, int byte, size_t bytes,
                                   struct fib_error *err);
enum fib_status fib_host_copy(struct fib_device *device, struct fib_stream *stream, void *dst,
                              const void *src, size_t bytes, struct fib_error *err);
enum fib_status fib_host_read(struct fib_device *device, void *host, const void *src, size_t bytes,
                              struct fib_error *err);
enum fib_status fib_host_write(struct fib_device *device, void *dst, const void *host, size_t bytes,
                               struct fib_error *err);
enum fib_status fib_host_checksum(struct fib_device *device, const void *src, size_t bytes,
                                  uint64_t *sum, struct fib_error *err);
enum fib_status fib_host_stream_create(struct fib_device *device, struct fib_stream **stream,
                                       struct fib_error *err);
void fib_host_stream_destroy(struct fib_device *device, struct fib_stream **stream);
enum fib_status fib_host_synchronize(struct fib_device *device, struct fib_stream *stream,
                                     struct fib_error *err);

/* The window of a host device: a copy of its spec. */
struct fib_window {
    struct fib_device *device;
    struct fib_window_spec spec; /* slots belongs to the window */
    uint32_t slots[];
};
enum fib_status fib_host_window_create(struct fib_device *device,
                                       const struct fib_window_spec *spec,
                                       struct fib_window **window, struct fib_error *err);
void fib_host_window_destroy(struct fib_window **window);

#endif
