/* Contents, checksums, scans and ring slots on the device, held against the host's. */
#include "gpu_tests.h"

#include "core/tensors.h"

enum { GUARD = 64 };

static const char *const kind_names[] = {"none", "normal", "uniform", "ints", "constant"};

/* Fills `count` elements at an odd element offset into a block and compares every byte, also those
 * around the range. */
static void compare_fill(struct gpu_test *t, const struct fib_fill *fill, enum fib_dtype dtype,
                         uint64_t first, size_t count, size_t shift)
{
    struct fib_error err = {0};
    const struct fib_device_ops *const ops = t->device->ops;
    const size_t elem = fib_dtype_bytes(dtype), bytes = (count + shift) * elem + GUARD;
    const uint64_t key = fib_fill_key(42, "tensor", 0);
    unsigned char *const want = malloc(bytes), *const have = malloc(bytes);
    void *block = NULL;
    memset(want, 0xcd, bytes);
    fib_fill_range(fill, dtype, key, first, count, want + shift * elem);
    GPU_OK(t, ops->alloc(t->device, bytes, &block, &err), &err);
    GPU_OK(t, ops->set_bytes(t->device, block, 0xcd, bytes, &err), &err);
    GPU_OK(t,
           ops->fill(t->device, fill, dtype, key, first, count,
                     (unsigned char *)block + shift * elem, &err),
           &err);
    GPU_OK(t, ops->read(t->device, have, block, bytes, &err), &err);
    size_t at = 0;
    while (at < bytes && want[at] == have[at])
        at++;
    GPU_CHECK(t, at == bytes,
              "%s %s, %zu elements from %llu at offset %zu: byte %zu is %02x, not %02x",
              fib_dtype_name(dtype), kind_names[fill->kind], count, (unsigned long long)first,
              shift, at, at < bytes ? have[at] : 0, at < bytes ? want[at] : 0);
    ops->release(t->device, block, bytes);
    free(want);
    free(have);
}

static void test_fill(struct gpu_test *t)
{
    static const struct fib_fill fills[] = {
        {.kind = FIB_FILL_NORMAL},
        {.kind = FIB_FILL_NORMAL, .scale = 0.125f, .offset = 1.0f},
        {.kind = FIB_FILL_NORMAL, .scale = 1e4f},
        {.kind = FIB_FILL_NORMAL, .scale = 1e-6f},
        {.kind = FIB_FILL_NORMAL, .scale = 1e12f},
        {.kind = FIB_FILL_NORMAL, .scale = 1e-38f},
        {.kind = FIB_FILL_UNIFORM},
        {.kind = FIB_FILL_UNIFORM, .scale = 2.0f, .offset = -1.0f},
        {.kind = FIB_FILL_UNIFORM, .scale = 3e38f, .offset = 3e38f},
        {.kind = FIB_FILL_INTS},
        {.kind = FIB_FILL_INTS, .scale = 100.0f, .offset = 0.5f},
        {.kind = FIB_FILL_CONSTANT},
        {.kind = FIB_FILL_CONSTANT, .scale = 0.5f, .offset = 2.0f},
        {.kind = FIB_FILL_CONSTANT, .scale = NAN},
    };
    static const size_t counts[] = {1, 2, 15, 16, 17, 255, 256, 257, 4099, 100003};
    for (size_t f = 0; f < sizeof(fills) / sizeof(fills[0]); f++)
        for (int d = 0; d < FIB_DTYPE_COUNT; d++)
            for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
                if (t->small && counts[c] != 257)
                    continue;
                compare_fill(t, &fills[f], (enum fib_dtype)d, 0, counts[c], 0);
                compare_fill(t, &fills[f], (enum fib_dtype)d, 777, counts[c], 3);
            }
}

/* Where two fills of a large tensor part, for the log. */
static void note_first_difference(struct gpu_test *t, const unsigned char *host, const void *block,
                                  size_t bytes, size_t elem)
{
    struct fib_error err = {0};
    unsigned char *const have = malloc(bytes);
    GPU_OK(t, t->device->ops->read(t->device, have, block, bytes, &err), &err);
    size_t count = 0, first = 0;
    for (size_t i = bytes / elem; i-- > 0;)
        if (memcmp(host + i * elem, have + i * elem, elem) != 0) {
            first = i;
            count++;
        }
    gpu_test_note(t, "%zu elements differ, first %zu: %02x%02x%02x%02x, not %02x%02x%02x%02x",
                  count, first, have[first * elem + 3], have[first * elem + 2],
                  have[first * elem + 1], have[first * elem], host[first * elem + 3],
                  host[first * elem + 2], host[first * elem + 1], host[first * elem]);
    free(have);
}

/* All formats over a million elements: rare branches of the generator and of the rounding. */
static void test_fill_checksums(struct gpu_test *t)
{
    const size_t count = t->small ? 10007 : 3000017;
    for (int kind = FIB_FILL_NORMAL; kind <= FIB_FILL_CONSTANT; kind++)
        for (int d = 0; d < FIB_DTYPE_COUNT; d++) {
            struct fib_error err = {0};
            const struct fib_fill fill = {.kind = (enum fib_fill_kind)kind, .scale = 1.5f};
            const size_t bytes = count * fib_dtype_bytes((enum fib_dtype)d);
            void *block = NULL;
            unsigned char *const host = malloc(bytes);
            uint64_t have = 0;
            fib_fill_host(t->pool, &fill, (enum fib_dtype)d, 99, count, host);
            const uint64_t want = fib_checksum(t->pool, host, bytes);
            GPU_OK(t, t->device->ops->alloc(t->device, bytes, &block, &err), &err);
            GPU_OK(t,
                   t->device->ops->fill(t->device, &fill, (enum fib_dtype)d, 99, 0, count, block,
                                        &err),
                   &err);
            GPU_OK(t, t->device->ops->checksum(t->device, block, bytes, &have, &err), &err);
            GPU_CHECK(t, want == have, "%s %s: checksum %016llx, the host's is %016llx",
                      fib_dtype_name((enum fib_dtype)d), kind_names[kind], (unsigned long long)have,
                      (unsigned long long)want);
            if (want != have && fib_dtype_bytes((enum fib_dtype)d) >= 4)
                note_first_difference(t, host, block, bytes, fib_dtype_bytes((enum fib_dtype)d));
            free(host);
            t->device->ops->release(t->device, block, bytes);
        }
}

static void test_checksum(struct gpu_test *t)
{
    static const size_t sizes[] = {0,     1,     7,      8,      9,      63,      64,
                                   65,    511,   512,    513,    65535,  65536,   65537,
                                   65600, 70001, 131072, 262145, 524288, 1048589, 9000001};
    struct fib_error err = {0};
    const size_t room = 9000001 + 8;
    unsigned char *const host = malloc(room);
    void *block = NULL;
    for (size_t i = 0; i < room; i++)
        host[i] = (unsigned char)(i * 131 + (i >> 9) * 7);
    GPU_OK(t, t->device->ops->alloc(t->device, room, &block, &err), &err);
    GPU_OK(t, t->device->ops->write(t->device, block, host, room, &err), &err);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (size_t shift = 0; shift < 8; shift += 3) {
            uint64_t have = 0;
            const uint64_t want = fib_checksum(t->pool, host + shift, sizes[i]);
            GPU_OK(t,
                   t->device->ops->checksum(t->device, (unsigned char *)block + shift, sizes[i],
                                            &have, &err),
                   &err);
            GPU_CHECK(t, want == have, "%zu bytes at offset %zu: %016llx, the host's is %016llx",
                      sizes[i], shift, (unsigned long long)have, (unsigned long long)want);
        }
    t->device->ops->release(t->device, block, room);
    free(host);
}

/* Long reads go another way than short ones. */
static void test_reads(struct gpu_test *t)
{
    static const size_t sizes[] = {1, 4096, (4 << 20) - 1, 4 << 20, (8 << 20) + 1, (40 << 20) + 13};
    struct fib_error err = {0};
    const size_t room = (40 << 20) + 13;
    unsigned char *const want = malloc(room), *const have = malloc(room);
    void *block = NULL;
    for (size_t i = 0; i < room; i++)
        want[i] = (unsigned char)(i * 37 + (i >> 11));
    GPU_OK(t, t->device->ops->alloc(t->device, room, &block, &err), &err);
    GPU_OK(t, t->device->ops->write(t->device, block, want, room, &err), &err);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memset(have, 0, room);
        GPU_OK(t, t->device->ops->read(t->device, have, block, sizes[i], &err), &err);
        GPU_CHECK(t, memcmp(have, want, sizes[i]) == 0, "%zu bytes differ", sizes[i]);
    }
    t->device->ops->release(t->device, block, room);
    free(want);
    free(have);
}

static void test_scan(struct gpu_test *t)
{
    struct fib_error err = {0};
    const struct fib_device_ops *const ops = t->device->ops;
    const size_t elems = 50021;
    void *block = NULL;
    GPU_OK(t, ops->alloc(t->device, elems * 8, &block, &err), &err);
    for (size_t size = 1; size <= 8; size *= 2) {
        struct fib_scan_hits hits = {0};
        const uint64_t mark = 0x7f7f7f7f7f7f7f7fu;
        GPU_OK(t, ops->set_bytes(t->device, block, 0x11, elems * size, &err), &err);
        GPU_OK(t, ops->scan(t->device, block, size, elems, UINT64_MAX, mark, &hits, &err), &err);
        GPU_CHECK(t, hits.count == 0 && hits.first == -1, "%zu-byte elements: found %lld", size,
                  (long long)hits.count);
        GPU_OK(t, ops->set_bytes(t->device, (char *)block + 1234 * size, 0x7f, 3 * size, &err),
               &err);
        GPU_OK(t, ops->set_bytes(t->device, (char *)block + (elems - 1) * size, 0xff, size, &err),
               &err);
        GPU_OK(t, ops->scan(t->device, block, size, elems, mark, mark, &hits, &err), &err);
        GPU_CHECK(t, hits.count == 4 && hits.first == 1234,
                  "%zu-byte elements: %lld hits, first %lld", size, (long long)hits.count,
                  (long long)hits.first);
    }
    ops->release(t->device, block, elems * 8);
}

static void test_spread(struct gpu_test *t)
{
    struct fib_error err = {0};
    const struct fib_device_ops *const ops = t->device->ops;
    enum { SLOTS = 2100, STRIDE = 1280, BYTES = 1003 };
    uint32_t order[SLOTS];
    unsigned char *const host = malloc((size_t)SLOTS * STRIDE);
    void *ring = NULL, *src = NULL;
    for (uint32_t i = 0; i < SLOTS; i++)
        order[i] = i * 11 % SLOTS; /* 11 and 2100 have no common factor */
    GPU_OK(t, ops->alloc(t->device, (size_t)SLOTS * STRIDE, &ring, &err), &err);
    GPU_OK(t, ops->alloc(t->device, STRIDE, &src, &err), &err);
    GPU_OK(t, ops->set_bytes(t->device, ring, 1, (size_t)SLOTS * STRIDE, &err), &err);
    GPU_OK(t, ops->set_bytes(t->device, src, 2, STRIDE, &err), &err);
    GPU_OK(t, ops->spread(t->device, NULL, ring, STRIDE, order, SLOTS - 1, src, BYTES, &err), &err);
    GPU_OK(t, ops->read(t->device, host, ring, (size_t)SLOTS * STRIDE, &err), &err);
    size_t wrong = 0;
    for (size_t s = 0; s < SLOTS; s++)
        for (size_t i = 0; i < STRIDE; i++) {
            const int want = i < BYTES && s != order[SLOTS - 1] ? 2 : 1;
            wrong += host[s * STRIDE + i] != want;
        }
    GPU_CHECK(t, wrong == 0, "%zu bytes are wrong", wrong);
    ops->release(t->device, ring, (size_t)SLOTS * STRIDE);
    ops->release(t->device, src, STRIDE);
    free(host);
}

static struct fib_problem small_problem(void)
{
    struct fib_problem problem = {.accumulate_roundoff = 0x1p-24};
    fib_problem_add(&problem, &(struct fib_tensor){.name = "x",
                                                   .role = FIB_INPUT,
                                                   .dtype = FIB_BF16,
                                                   .rank = 2,
                                                   .shape = {3, 1001},
                                                   .fill = FIB_FILL_DATA});
    fib_problem_add(&problem, &(struct fib_tensor){.name = "state",
                                                   .role = FIB_INOUT,
                                                   .dtype = FIB_F32,
                                                   .rank = 1,
                                                   .shape = {777},
                                                   .fill = FIB_FILL_DATA});
    fib_problem_add(
        &problem,
        &(struct fib_tensor){
            .name = "out", .role = FIB_OUTPUT, .dtype = FIB_F16, .rank = 1, .shape = {515}});
    return problem;
}

static void expect_damage(struct gpu_test *t, struct fib_tensors *tensors, uint32_t want_slot,
                          const char *want_text)
{
    struct fib_error err = {0};
    struct fib_verification found = {0};
    uint32_t slot = 0;
    GPU_OK(t, fib_tensors_verify_all(tensors, &slot, &found, &err), &err);
    if (!want_text) {
        GPU_CHECK(t, !found.failed, "slot %u: %s", slot, found.message);
        return;
    }
    GPU_CHECK(t, found.failed && slot == want_slot && strstr(found.message, want_text),
              "slot %u, '%s' where slot %u, '%s' was expected", slot, found.message, want_slot,
              want_text);
}

static void damage(struct gpu_test *t, struct fib_tensors *tensors, uint32_t slot, int tensor,
                   size_t offset)
{
    struct fib_error err = {0};
    unsigned char *const at = (unsigned char *)fib_tensors_address(tensors, slot, tensor) + offset;
    unsigned char byte = 0;
    GPU_OK(t, t->device->ops->read(t->device, &byte, at, 1, &err), &err);
    byte ^= 0x10;
    GPU_OK(t, t->device->ops->write(t->device, at, &byte, 1, &err), &err);
}

/* Guards, inputs, in-place tensors and poison of ring slots that live on the device. */
static void test_tensors(struct gpu_test *t)
{
    enum { SLOTS = 37, X_BYTES = 3 * 1001 * 2, STATE_BYTES = 777 * 4, OUT_BYTES = 515 * 2 };
    struct fib_error err = {0};
    const struct fib_problem problem = small_problem();
    struct fib_tensors *tensors = NULL;
    uint32_t slots[SLOTS];
    GPU_OK(t, fib_tensors_create(t->device, &problem, 42, SLOTS, &tensors, &err), &err);
    expect_damage(t, tensors, 0, NULL);
    damage(t, tensors, 21, 0, X_BYTES - 1);
    expect_damage(t, tensors, 21, "input x was changed, first at element 3002");
    damage(t, tensors, 21, 0, X_BYTES - 1);
    damage(t, tensors, 36, 2, OUT_BYTES);
    expect_damage(t, tensors, 36, "out");
    damage(t, tensors, 36, 2, OUT_BYTES);
    damage(t, tensors, 0, 0, 0);
    expect_damage(t, tensors, 0, "input x was changed, first at element 0");
    damage(t, tensors, 0, 0, 0);
    for (uint32_t i = 0; i < SLOTS; i++) {
        slots[i] = SLOTS - 1 - i;
        damage(t, tensors, i, 1, i * 7);
        damage(t, tensors, i, 2, i * 3); /* outputs may change */
    }
    expect_damage(t, tensors, 0, NULL);
    GPU_OK(t, fib_tensors_restore_slots(tensors, NULL, slots, SLOTS, &err), &err);
    unsigned char want[STATE_BYTES];
    fib_fill_range(&problem.tensors[1].fill, FIB_F32, fib_fill_key(42, "state", 0), 0, 777, want);
    for (uint32_t i = 0; i < SLOTS; i++) {
        const void *const have = fib_tensors_host(tensors, i, 1, &err);
        GPU_CHECK(t, have && memcmp(have, want, STATE_BYTES) == 0, "slot %u is not restored", i);
    }
    GPU_OK(t, fib_tensors_poison(tensors, 5, FIB_POISON_B, &err), &err);
    const unsigned char *const out = fib_tensors_host(tensors, 5, 2, &err);
    GPU_CHECK(t, out && out[0] == FIB_POISON_B && out[OUT_BYTES - 1] == FIB_POISON_B, "no poison");
    GPU_OK(t, fib_tensors_redraw(tensors, 0, 1, &err), &err);
    expect_damage(t, tensors, 0, NULL);
    fib_tensors_free(&tensors);
}

/* Too much memory is an error of this call alone. */
static void test_out_of_memory(struct gpu_test *t)
{
    struct fib_error err = {0}, later = {0};
    void *block = NULL;
    const size_t bytes = (size_t)t->device->facts.memory_bytes * 2;
    const enum fib_status st = t->device->ops->alloc(t->device, bytes, &block, &err);
    GPU_CHECK(t, st == FIB_ERR_OOM && !block && strstr(err.text, "free"), "status %d: %s", (int)st,
              err.text);
    GPU_OK(t, t->device->ops->alloc(t->device, 1 << 20, &block, &later), &later);
    GPU_OK(t, t->device->ops->set_bytes(t->device, block, 0, 1 << 20, &later), &later);
    GPU_OK(t, t->device->ops->synchronize(t->device, NULL, &later), &later);
    t->device->ops->release(t->device, block, 1 << 20);
    const uint64_t free_bytes = t->device->ops->free_bytes(t->device);
    GPU_CHECK(t, free_bytes > 0 && free_bytes <= t->device->facts.memory_bytes, "%llu bytes free",
              (unsigned long long)free_bytes);
}

static const struct gpu_test_row rows[] = {
    {"fill", test_fill, false},         {"fill_checksums", test_fill_checksums, false},
    {"checksum", test_checksum, false}, {"reads", test_reads, true},
    {"scan", test_scan, false},         {"spread", test_spread, false},
    {"tensors", test_tensors, false},   {"out_of_memory", test_out_of_memory, true},
};
const struct gpu_suite gpu_suite_memory = {"memory", rows, sizeof(rows) / sizeof(rows[0])};
