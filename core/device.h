/* What a device does for the runner: memory, filling, streams, and timed windows of calls.
 *
 * Three implementations: host memory with the real clock (device_cpu.c), host memory with a
 * scripted clock for tests (device_fake.c), CUDA (gpu/device_cuda.c). The runner knows only this
 * page. A *window* is the unit of timing: N calls over ring slots in a given order, measured as
 * one. A device that captures builds the N calls into a graph between two event nodes when the
 * window is created and replays it on each run; a device that cannot, calls them in a loop between
 * two readings of its clock. */
#ifndef FIB_CORE_DEVICE_H
#define FIB_CORE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fill.h"
#include "core/status.h"

struct fib_pool;
struct fib_device;
struct fib_stream; /* in-order queue; NULL means the device's own */
struct fib_window;

enum fib_device_kind { FIB_DEVICE_CPU = 0, FIB_DEVICE_CUDA };

/* How a window is timed. FIB_TIMER_DEFAULT asks for the device's default. */
enum fib_timer {
    FIB_TIMER_DEFAULT = 0,
    FIB_TIMER_GRAPH,    /* graph of N calls between two event nodes */
    FIB_TIMER_ISOLATED, /* flush, one call, events: latency of one cold call */
    FIB_TIMER_CUPTI,    /* activity records */
    FIB_TIMER_EVENTS,   /* events around N stream launches */
    FIB_TIMER_WALL      /* host clock around N calls and a synchronise */
};
const char *fib_timer_name(enum fib_timer timer);
/* NULL when the device can use this timer, else the reason. */
const char *fib_device_timer_refusal(const struct fib_device *device, enum fib_timer timer);

/* Constant facts, filled when the device is opened. */
struct fib_device_facts {
    enum fib_device_kind kind;
    char name[96];            /* "AMD EPYC 9654", "NVIDIA H200" */
    char uuid[64];            /* stable identity; of a CPU a hash of model, sockets, core count */
    int compute_capability;   /* 90 for 9.0; 0 on a CPU */
    int unit_count;           /* SMs; on a CPU the threads that work */
    uint64_t memory_bytes;    /* installed */
    uint64_t cache_bytes;     /* L2 of a GPU, last-level cache of a CPU */
    uint64_t ring_bytes;      /* bytes a ring must touch to be cold (measurement rules) */
    uint64_t ring_limit_bytes; /* most bytes a ring may take */
    enum fib_timer default_timer;
    double tick_ms;           /* step of the clock that times windows */
    double window_overhead_ms; /* time of an empty window, subtracted once per window */
    const char *overhead_method;
    double window_min_ms;     /* shortest window worth timing */
    double warmup_min_ms, warmup_cap_ms, warmup_quick_ms; /* see core/sample.h */
    double flops_per_s, bytes_per_s; /* cautious guesses, for estimates before anything has run */
    const char *default_backend; /* label that runs when nothing else can: "cpu" or "cuda" */
    double call_gap_ms;       /* time of an empty call inside a window of the default timer; 0: not
                                 known or nothing to speak of */
    int host_threads;         /* threads of the pool where unit_count counts something else; 0: the
                                 same */
    char note[160];           /* one clause on why this device: versions, or why there is no GPU */
};

/* Enqueues one call that reads and writes ring slot `slot`. Only launches; never synchronises. */
typedef enum fib_status fib_call_fn(void *context, struct fib_stream *stream, uint32_t slot,
                                    struct fib_error *err);
/* Runs before each window, outside the measured interval: restores the in-place tensors of the
 * window's slots in the order in which the window will use them, so that as many bytes lie between
 * the restoring of a slot and its use as between two uses. */
typedef enum fib_status fib_reset_fn(void *context, struct fib_stream *stream,
                                     const uint32_t *slots, uint32_t slot_count,
                                     struct fib_error *err);

struct fib_window_spec {
    enum fib_timer timer;   /* never FIB_TIMER_DEFAULT */
    uint32_t call_count;    /* N >= 1 */
    const uint32_t *slots;  /* N slot numbers in call order; copied */
    fib_call_fn *call;
    void *call_context;
    fib_reset_fn *reset;    /* NULL when nothing needs restoring */
    void *reset_context;
};

struct fib_window_sample {
    double window_ms;   /* raw time of the whole window, overhead included */
    double mhz;         /* clock during the window; NaN when unknown */
    double overhead_ms; /* of a window of this timer without calls: to be subtracted */
    const char *overhead_method; /* how that was found; NULL: as the facts say */
};

/* Elements that a scan found. */
struct fib_scan_hits {
    int64_t count;
    int64_t first; /* index; -1: none */
};

/* Bytes [first, last) from the start of a ring slot. */
struct fib_span {
    uint64_t first, last;
};

struct fib_device_ops {
    void (*close)(struct fib_device *device);
    /* Bytes that can be allocated now without harm (on a host: MemAvailable and cgroup limit). */
    uint64_t (*free_bytes)(struct fib_device *device);
    /* 256-byte aligned, content undefined. */
    enum fib_status (*alloc)(struct fib_device *device, size_t bytes, void **address,
                             struct fib_error *err);
    void (*release)(struct fib_device *device, void *address, size_t bytes);
    enum fib_status (*fill)(struct fib_device *device, const struct fib_fill *fill,
                            enum fib_dtype dtype, uint64_t key, uint64_t first, size_t count,
                            void *dst, struct fib_error *err);
    enum fib_status (*set_bytes)(struct fib_device *device, void *dst, int byte, size_t bytes,
                                 struct fib_error *err);
    /* Device to device. */
    enum fib_status (*copy)(struct fib_device *device, struct fib_stream *stream, void *dst,
                            const void *src, size_t bytes, struct fib_error *err);
    enum fib_status (*read)(struct fib_device *device, void *host, const void *src, size_t bytes,
                            struct fib_error *err);
    enum fib_status (*write)(struct fib_device *device, void *dst, const void *host, size_t bytes,
                             struct fib_error *err);
    enum fib_status (*checksum)(struct fib_device *device, const void *src, size_t bytes,
                                uint64_t *sum, struct fib_error *err);
    enum fib_status (*stream_create)(struct fib_device *device, struct fib_stream **stream,
                                     struct fib_error *err);
    void (*stream_destroy)(struct fib_device *device, struct fib_stream **stream);
    /* Waits for one stream, or with NULL for the whole device. */
    enum fib_status (*synchronize)(struct fib_device *device, struct fib_stream *stream,
                                   struct fib_error *err);
    /* May fail with FIB_ERR_UNSUPPORTED when the calls cannot be captured. */
    enum fib_status (*window_create)(struct fib_device *device, const struct fib_window_spec *spec,
                                     struct fib_window **window, struct fib_error *err);
    enum fib_status (*window_run)(struct fib_window *window, struct fib_window_sample *sample,
                                  struct fib_error *err);
    void (*window_destroy)(struct fib_window **window);
    /* Optional, NULL where the host does it as well through the address itself.
     * Copies one source to dst + slots[i] * stride_bytes for all i, in that order as far as the
     * device has one. */
    enum fib_status (*spread)(struct fib_device *device, struct fib_stream *stream, void *dst,
                              uint64_t stride_bytes, const uint32_t *slots, uint32_t slot_count,
                              const void *src, size_t bytes, struct fib_error *err);
    /* Elements whose bits under `mask` equal `pattern`. */
    enum fib_status (*scan)(struct fib_device *device, const void *src, size_t elem_bytes,
                            uint64_t count, uint64_t mask, uint64_t pattern,
                            struct fib_scan_hits *hits, struct fib_error *err);
    /* First slot >= 1 that differs from slot 0 outside the skipped spans; UINT32_MAX: none. */
    enum fib_status (*compare_slots)(struct fib_device *device, const void *base,
                                     uint64_t stride_bytes, uint32_t slot_count,
                                     const struct fib_span *skipped, int skipped_count,
                                     uint32_t *first_slot, struct fib_error *err);
    /* Optional, NULL where there are no streams: the stream as the libraries of the device's maker
     * know it (a cudaStream_t). */
    void *(*native_stream)(const struct fib_stream *stream);
    /* Optional. What a backend has left in a state of the device that shapes other calls than its
     * own, as a clause; NULL when nothing. Puts it back. */
    const char *(*meddled)(struct fib_device *device, char *buffer, size_t buffer_bytes);
    /* NULL when the timer works here, else the reason. */
    const char *(*timer_refusal)(const struct fib_device *device, enum fib_timer timer);
    /* Monotonic host time for budgets; the fake device scripts it. */
    double (*now_ms)(struct fib_device *device);
    /* Wall-clock seconds since 1970 for records. */
    int64_t (*utc_s)(struct fib_device *device);
};

/* How long the device was at work lately, in pieces of 10 ms, whichever case asked for it: tells
 * whether its clocks are still up. */
enum { FIB_BUSY_PIECES = 10 };
struct fib_busy {
    double ms[FIB_BUSY_PIECES];
    int64_t last;  /* number of the newest piece since the clock's zero */
    bool settled;  /* the last complete warm-up ended because its blocks agreed */
};

/* First member of every implementation's struct. `host_memory` says that addresses may be
 * dereferenced on the host (cpu and fake); then read/write are plain copies. */
struct fib_device {
    const struct fib_device_ops *ops;
    struct fib_device_facts facts;
    bool host_memory;
    bool lost; /* unusable for this process from now on: after an error, all calls fail; or its
                  memory was taken by somebody who does not give it back */
    struct fib_stream *stream; /* where everything runs that names no other; NULL where the device
                                  has no streams */
    struct fib_busy busy;
    struct fib_pool *pool; /* borrowed; host work (fill, oracle, cpu backends) is shared over it */
};

/* The host with its real clock. The pool is borrowed and must outlive the device. */
enum fib_status fib_device_cpu_open(struct fib_pool *pool, struct fib_device **device,
                                    struct fib_error *err);

/* Tests only: host memory and a clock that follows a script. Every call of a window advances the
 * clock by the next entry of `call_ms` (cycled), which is the time at 1000 MHz without drift; utc
 * starts at `utc_s` and never moves. Facts are fixed values, the same on every machine; it gives
 * out no more memory than facts.memory_bytes says. */
struct fib_fake_script {
    const double *call_ms;
    size_t call_count;
    int64_t utc_s;
    const double *mhz;    /* clock of each window (cycled): 500 doubles its calls' times, and NaN is
                             a window without stamps, at 1000. NULL: always 1000 */
    size_t mhz_count;
    double drift_per_s;   /* calls take 1 + drift_per_s x (seconds on the fake clock) as long */
    double tick_ms;       /* step of the readings that a window is timed with, goes into the facts;
                             0: none */
};
enum fib_status fib_device_fake_open(struct fib_pool *pool, const struct fib_fake_script *script,
                                     struct fib_device **device, struct fib_error *err);

/* Moves the fake clock by time_ms >= 0, as a test's backend does from its run(): the call then
 * takes that time instead of the script's. */
void fib_device_fake_advance(struct fib_device *device, double time_ms);
/* What a faulty kernel does to a GPU: nobody knows until somebody waits, and then it is lost. */
void fib_device_fake_break(struct fib_device *device);

/* Notes that the device has just worked for `work_ms`. */
void fib_device_note_work(struct fib_device *device, double work_ms);
/* Its work of the last 100 ms (90 at least), in ms. */
double fib_device_recent_work_ms(struct fib_device *device);

/* Accepts NULL; resets the handle. */
void fib_device_close(struct fib_device **device);

#endif
