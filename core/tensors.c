/* One device block per case: ring slots that hold every tensor between guard bytes, then one
 * pristine copy of what is updated in place. */
#include "core/tensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/text.h"

enum { GUARD_BYTES = 256, ALIGN_BYTES = 256, MAX_SLOTS = 65536, LOCATE_ELEMS = 4096 };

/* Places of the tensors in a slot. Every byte of a slot that belongs to no tensor is a guard:
 * at least GUARD_BYTES on both sides of each tensor. */
struct layout {
    uint64_t start[FIB_MAX_TENSORS], end[FIB_MAX_TENSORS]; /* from the start of the slot */
    uint64_t stride;
    uint64_t pristine[FIB_MAX_TENSORS]; /* from the start of the pristine part; in-place only */
    uint64_t pristine_bytes;
};

/* Checksums of the inputs of one draw, by tensor index. */
struct draw_sums {
    uint32_t draw;
    uint64_t sum[FIB_MAX_TENSORS];
};

/* A gap is two guards and at most two alignment paddings long. */
enum { GAP_MAX_BYTES = 2 * GUARD_BYTES + 2 * ALIGN_BYTES };

struct fib_tensors {
    struct fib_device *device;
    struct fib_problem problem;
    struct layout layout;
    uint64_t seed;
    unsigned char *base;
    uint64_t byte_count;
    uint32_t slot_count;
    uint32_t *slot_draw; /* [slot_count] draw that fills the slot */
    unsigned char guards[FIB_MAX_TENSORS + 1][GAP_MAX_BYTES]; /* content of each gap of a slot */
    struct draw_sums *sums;
    size_t sum_count;
    uint32_t pristine_draw; /* draw the pristine copy holds; made again when a slot needs another */
    void *host[FIB_MAX_TENSORS]; /* read-back buffers where the device's memory is not the host's */
};

static uint64_t add_capped(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t mul_capped(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t align_up(uint64_t value)
{
    const uint64_t up = add_capped(value, ALIGN_BYTES - 1);
    return up == UINT64_MAX ? up : up / ALIGN_BYTES * ALIGN_BYTES;
}

static bool is_read_only(const struct fib_tensor *tensor)
{
    return tensor->role == FIB_INPUT || tensor->role == FIB_SCALAR;
}

static void lay_out(const struct fib_problem *problem, struct layout *layout)
{
    *layout = (struct layout){0};
    uint64_t cursor = 0;
    for (int t = 0; t < problem->tensor_count; t++) {
        const struct fib_tensor *tensor = &problem->tensors[t];
        const uint64_t bytes = fib_tensor_bytes(tensor);
        layout->start[t] = align_up(add_capped(cursor, GUARD_BYTES));
        layout->end[t] = add_capped(layout->start[t], bytes);
        cursor = add_capped(layout->end[t], GUARD_BYTES);
        if (tensor->role == FIB_INOUT) {
            layout->pristine[t] = layout->pristine_bytes;
            layout->pristine_bytes = align_up(add_capped(layout->pristine_bytes, bytes));
        }
    }
    layout->stride = align_up(cursor);
}

double fib_tensors_footprint(const struct fib_problem *problem)
{
    double bytes = 0;
    for (int t = 0; t < problem->tensor_count; t++)
        if (problem->tensors[t].role != FIB_SCALAR)
            bytes += (double)fib_tensor_bytes(&problem->tensors[t]);
    return bytes;
}

uint32_t fib_tensors_ring_slots(const struct fib_problem *problem,
                                const struct fib_device_facts *facts, bool hot, bool *capped)
{
    *capped = false;
    if (hot)
        return 1;
    const double footprint = fib_tensors_footprint(problem);
    const double wanted = fmax(2, ceil((double)facts->ring_bytes / fmax(footprint, 1)) + 1);
    struct layout layout;
    lay_out(problem, &layout);
    const uint64_t room = facts->ring_limit_bytes > layout.pristine_bytes
                              ? facts->ring_limit_bytes - layout.pristine_bytes
                              : 0;
    uint64_t most = layout.stride > 0 ? room / layout.stride : MAX_SLOTS;
    if (most > MAX_SLOTS)
        most = MAX_SLOTS;
    if (most < 1)
        most = 1;
    *capped = wanted > (double)most;
    return *capped ? (uint32_t)most : (uint32_t)wanted;
}

static uint64_t block_bytes(const struct layout *layout, uint32_t slot_count)
{
    return add_capped(mul_capped(layout->stride, slot_count), layout->pristine_bytes);
}

uint64_t fib_tensors_bytes(const struct fib_problem *problem, uint32_t slot_count)
{
    struct layout layout;
    lay_out(problem, &layout);
    return block_bytes(&layout, slot_count);
}

uint32_t fib_tensors_slot_count(const struct fib_tensors *tensors)
{
    return tensors->slot_count;
}

static unsigned char *slot_base(const struct fib_tensors *tensors, uint32_t slot)
{
    return tensors->base + (size_t)slot * tensors->layout.stride;
}

void *fib_tensors_address(const struct fib_tensors *tensors, uint32_t slot, int tensor_index)
{
    return slot_base(tensors, slot) + tensors->layout.start[tensor_index];
}

static unsigned char *pristine_address(const struct fib_tensors *tensors, int t)
{
    return slot_base(tensors, tensors->slot_count) + tensors->layout.pristine[t];
}

static enum fib_status fill_tensor(struct fib_tensors *tensors, int t, uint32_t draw, void *dst,
                                   struct fib_error *err)
{
    struct fib_device *device = tensors->device;
    const struct fib_tensor *tensor = &tensors->problem.tensors[t];
    if (tensor->fill.kind == FIB_FILL_NONE)
        return device->ops->set_bytes(device, dst, 0, fib_tensor_bytes(tensor), err);
    return device->ops->fill(device, &tensor->fill, tensor->dtype,
                             fib_fill_key(tensors->seed, tensor->name, draw), 0,
                             (size_t)fib_tensor_elems(tensor), dst, err);
}

static const struct draw_sums *find_sums(const struct fib_tensors *tensors, uint32_t draw)
{
    for (size_t i = 0; i < tensors->sum_count; i++)
        if (tensors->sums[i].draw == draw)
            return &tensors->sums[i];
    return NULL;
}

/* Remembers the checksums of a draw from a slot that was just filled with it. */
static enum fib_status note_sums(struct fib_tensors *tensors, uint32_t slot, uint32_t draw,
                                 struct fib_error *err)
{
    struct fib_device *device = tensors->device;
    struct draw_sums sums = {.draw = draw};
    enum fib_status st = FIB_OK;
    if (find_sums(tensors, draw))
        return FIB_OK;
    for (int t = 0; t < tensors->problem.tensor_count && st == FIB_OK; t++)
        if (is_read_only(&tensors->problem.tensors[t]))
            st = device->ops->checksum(device, fib_tensors_address(tensors, slot, t),
                                       fib_tensor_bytes(&tensors->problem.tensors[t]), &sums.sum[t],
                                       err);
    if (st != FIB_OK)
        return st;
    tensors->sums = fib_realloc(tensors->sums, (tensors->sum_count + 1) * sizeof(*tensors->sums));
    tensors->sums[tensors->sum_count++] = sums;
    return FIB_OK;
}

/* Fills what a call reads; the pristine copy is then a copy of the slot. */
enum fib_status fib_tensors_redraw(struct fib_tensors *tensors, uint32_t slot, uint32_t draw,
                                   struct fib_error *err)
{
    struct fib_device *device = tensors->device;
    for (int t = 0; t < tensors->problem.tensor_count; t++) {
        const struct fib_tensor *tensor = &tensors->problem.tensors[t];
        if (tensor->role == FIB_OUTPUT)
            continue;
        void *address = fib_tensors_address(tensors, slot, t);
        enum fib_status st = fill_tensor(tensors, t, draw, address, err);
        if (st == FIB_OK && tensor->role == FIB_INOUT)
            st = device->ops->copy(device, NULL, pristine_address(tensors, t), address,
                                   fib_tensor_bytes(tensor), err);
        if (st != FIB_OK)
            return st;
    }
    tensors->pristine_draw = draw;
    tensors->slot_draw[slot] = draw;
    return note_sums(tensors, slot, draw, err);
}

/* A pattern in which a shifted copy of itself does not go unnoticed. */
static unsigned char guard_byte(uint64_t offset)
{
    return (unsigned char)(0xa5u ^ (offset * 29 + (offset >> 8) * 113));
}

/* Gap g lies before tensor g; the last one ends the slot. */
static void gap_range(const struct fib_tensors *tensors, int gap, uint64_t *first, uint64_t *last)
{
    const struct layout *layout = &tensors->layout;
    *first = gap > 0 ? layout->end[gap - 1] : 0;
    *last = gap < tensors->problem.tensor_count ? layout->start[gap] : layout->stride;
}

/* The pattern is the same in every slot, so it is made once. */
static void make_guards(struct fib_tensors *tensors)
{
    for (int gap = 0; gap <= tensors->problem.tensor_count; gap++) {
        uint64_t first, last;
        gap_range(tensors, gap, &first, &last);
        for (uint64_t i = first; i < last; i++)
            tensors->guards[gap][i - first] = guard_byte(i);
    }
}

static enum fib_status write_guards(struct fib_tensors *tensors, uint32_t slot,
                                    struct fib_error *err)
{
    struct fib_device *device = tensors->device;
    enum fib_status st = FIB_OK;
    for (int gap = 0; gap <= tensors->problem.tensor_count && st == FIB_OK; gap++) {
        uint64_t first, last;
        gap_range(tensors, gap, &first, &last);
        st = device->ops->write(device, slot_base(tensors, slot) + first, tensors->guards[gap],
                                (size_t)(last - first), err);
    }
    return st;
}

/* Doubles what is there until all slots are full: few, long copies. */
static enum fib_status copy_slots(struct fib_tensors *tensors, struct fib_error *err)
{
    struct fib_device *device = tensors->device;
    uint32_t done = 1;
    while (done < tensors->slot_count) {
        const uint32_t left = tensors->slot_count - done, count = left < done ? left : done;
        const enum fib_status st =
            device->ops->copy(device, NULL, slot_base(tensors, done), tensors->base,
                              (size_t)count * tensors->layout.stride, err);
        if (st != FIB_OK)
            return st;
        done += count;
    }
    return FIB_OK;
}

static enum fib_status check_room(const struct fib_tensors *tensors, struct fib_error *err)
{
    const uint64_t free_bytes = tensors->device->ops->free_bytes(tensors->device);
    if (tensors->byte_count <= free_bytes && tensors->byte_count <= SIZE_MAX / 2)
        return FIB_OK;
    struct fib_text text = {0};
    fib_text_add(&text, "needs ");
    fib_text_add_bytes(&text, (double)tensors->byte_count);
    fib_text_addf(&text, " for %u ring slot%s, ", (unsigned)tensors->slot_count,
                  tensors->slot_count == 1 ? "" : "s");
    fib_text_add_bytes(&text, (double)free_bytes);
    fib_text_add(&text, " free");
    const enum fib_status st = fib_fail(err, FIB_ERR_OOM, "%s", fib_text_chars(&text));
    fib_text_free(&text);
    return st;
}

static enum fib_status fill_ring(struct fib_tensors *tensors, struct fib_error *err)
{
    enum fib_status st = fib_tensors_redraw(tensors, 0, 0, err);
    if (st == FIB_OK)
        st = fib_tensors_poison(tensors, 0, FIB_POISON_A, err);
    if (st == FIB_OK)
        st = write_guards(tensors, 0, err);
    if (st == FIB_OK)
        st = copy_slots(tensors, err);
    return st == FIB_OK ? tensors->device->ops->synchronize(tensors->device, NULL, err) : st;
}

enum fib_status fib_tensors_create(struct fib_device *device, const struct fib_problem *problem,
                                   uint64_t seed, uint32_t slot_count, struct fib_tensors **tensors,
                                   struct fib_error *err)
{
    struct fib_tensors *made = fib_zalloc(sizeof(*made));
    made->device = device;
    made->problem = *problem;
    made->seed = seed;
    made->slot_count = slot_count > 0 ? slot_count : 1;
    made->slot_draw = fib_zalloc_array(made->slot_count, sizeof(*made->slot_draw));
    lay_out(problem, &made->layout);
    make_guards(made);
    made->byte_count = block_bytes(&made->layout, made->slot_count);
    void *base = NULL;
    enum fib_status st = check_room(made, err);
    if (st == FIB_OK)
        st = device->ops->alloc(device, (size_t)made->byte_count, &base, err);
    if (st == FIB_OK) {
        made->base = base;
        st = fill_ring(made, err);
    }
    if (st != FIB_OK)
        fib_tensors_free(&made);
    *tensors = made;
    return st;
}

void fib_tensors_free(struct fib_tensors **tensors_ptr)
{
    struct fib_tensors *tensors = *tensors_ptr;
    if (!tensors)
        return;
    if (tensors->base)
        tensors->device->ops->release(tensors->device, tensors->base, (size_t)tensors->byte_count);
    for (int t = 0; t < FIB_MAX_TENSORS; t++)
        free(tensors->host[t]);
    free(tensors->slot_draw);
    free(tensors->sums);
    free(tensors);
    *tensors_ptr = NULL;
}

enum fib_status fib_tensors_poison(struct fib_tensors *tensors, uint32_t slot, int byte,
                                   struct fib_error *err)
{
    struct fib_device *device = tensors->device;
    enum fib_status st = FIB_OK;
    for (int t = 0; t < tensors->problem.tensor_count && st == FIB_OK; t++)
        if (tensors->problem.tensors[t].role == FIB_OUTPUT)
            st = device->ops->set_bytes(device, fib_tensors_address(tensors, slot, t), byte,
                                        fib_tensor_bytes(&tensors->problem.tensors[t]), err);
    return st;
}

/* The pristine copy holds one draw. Restoring slots of different draws in turn is allowed, just
 * slow: it is made again for each change. */
static enum fib_status need_pristine(struct fib_tensors *tensors, uint32_t draw,
                                     struct fib_error *err)
{
    if (tensors->pristine_draw == draw)
        return FIB_OK;
    enum fib_status st = FIB_OK;
    for (int t = 0; t < tensors->problem.tensor_count && st == FIB_OK; t++)
        if (tensors->problem.tensors[t].role == FIB_INOUT)
            st = fill_tensor(tensors, t, draw, pristine_address(tensors, t), err);
    if (st == FIB_OK)
        tensors->pristine_draw = draw;
    return st;
}

static enum fib_status restore_slot(struct fib_tensors *tensors, struct fib_stream *stream,
                                    uint32_t slot, struct fib_error *err)
{
    struct fib_device *device = tensors->device;
    enum fib_status st = need_pristine(tensors, tensors->slot_draw[slot], err);
    for (int t = 0; t < tensors->problem.tensor_count && st == FIB_OK; t++)
        if (tensors->problem.tensors[t].role == FIB_INOUT)
            st = device->ops->copy(device, stream, fib_tensors_address(tensors, slot, t),
                                   pristine_address(tensors, t),
                                   fib_tensor_bytes(&tensors->problem.tensors[t]), err);
    return st;
}

enum fib_status fib_tensors_repair(struct fib_tensors *tensors, uint32_t slot,
                                   struct fib_error *err)
{
    const enum fib_status st = write_guards(tensors, slot, err);
    return st == FIB_OK ? fib_tensors_redraw(tensors, slot, tensors->slot_draw[slot], err) : st;
}

enum fib_status fib_tensors_restore(struct fib_tensors *tensors, uint32_t slot,
                                    struct fib_error *err)
{
    return restore_slot(tensors, NULL, slot, err);
}

/* True when all these slots hold the draw that the pristine copy holds. */
static bool match_pristine(const struct fib_tensors *tensors, const uint32_t *slots,
                           uint32_t slot_count)
{
    for (uint32_t i = 0; i < slot_count; i++)
        if (tensors->slot_draw[slots[i]] != tensors->pristine_draw)
            return false;
    return true;
}

/* One launch a tensor instead of one copy a slot: a copy costs microseconds whatever its size. */
static enum fib_status spread_pristine(struct fib_tensors *tensors, struct fib_stream *stream,
                                       const uint32_t *slots, uint32_t slot_count,
                                       struct fib_error *err)
{
    struct fib_device *device = tensors->device;
    enum fib_status st = FIB_OK;
    for (int t = 0; t < tensors->problem.tensor_count && st == FIB_OK; t++)
        if (tensors->problem.tensors[t].role == FIB_INOUT)
            st = device->ops->spread(device, stream, fib_tensors_address(tensors, 0, t),
                                     tensors->layout.stride, slots, slot_count,
                                     pristine_address(tensors, t),
                                     fib_tensor_bytes(&tensors->problem.tensors[t]), err);
    return st;
}

enum fib_status fib_tensors_restore_slots(struct fib_tensors *tensors, struct fib_stream *stream,
                                          const uint32_t *slots, uint32_t slot_count,
                                          struct fib_error *err)
{
    enum fib_status st = FIB_OK;
    if (tensors->device->ops->spread && match_pristine(tensors, slots, slot_count))
        return spread_pristine(tensors, stream, slots, slot_count, err);
    for (uint32_t i = 0; i < slot_count && st == FIB_OK; i++)
        st = restore_slot(tensors, stream, slots[i], err);
    return st;
}

enum fib_status fib_tensors_synchronize(struct fib_tensors *tensors, struct fib_error *err)
{
    return tensors->device->ops->synchronize(tensors->device, NULL, err);
}

bool fib_tensors_has_inout(const struct fib_tensors *tensors)
{
    for (int t = 0; t < tensors->problem.tensor_count; t++)
        if (tensors->problem.tensors[t].role == FIB_INOUT)
            return true;
    return false;
}

/* Read-back buffer of a tensor; NULL with *err set when there is no memory for it. */
static unsigned char *need_buffer(struct fib_tensors *tensors, int t, struct fib_error *err)
{
    const size_t bytes = fib_tensor_bytes(&tensors->problem.tensors[t]);
    void **buffer = &tensors->host[t];
    if (!*buffer)
        *buffer = malloc(bytes > 0 ? bytes : 1);
    if (!*buffer)
        fib_fail(err, FIB_ERR_OOM, "no host memory for the %zu bytes of tensor %s", bytes,
                 tensors->problem.tensors[t].name);
    return *buffer;
}

const void *fib_tensors_host(struct fib_tensors *tensors, uint32_t slot, int tensor_index,
                             struct fib_error *err)
{
    struct fib_device *device = tensors->device;
    const void *address = fib_tensors_address(tensors, slot, tensor_index);
    if (device->host_memory)
        return address;
    const size_t bytes = fib_tensor_bytes(&tensors->problem.tensors[tensor_index]);
    void *buffer = need_buffer(tensors, tensor_index, err);
    if (!buffer || device->ops->read(device, buffer, address, bytes, err) != FIB_OK)
        return NULL;
    return buffer;
}

/* A copy costs about as much as this many bytes of it. */
static const int64_t copy_worth_bytes = 100000;

static int64_t count_runs(const int64_t *rows, int64_t row_count)
{
    int64_t runs = 0;
    for (int64_t i = 0; i < row_count; i++)
        runs += i == 0 || rows[i] != rows[i - 1] + 1;
    return runs;
}

/* Rows go to their places in a buffer for the whole tensor, one copy for each run of neighbours;
 * pages of the buffer that nobody touches take no memory. */
const void *fib_tensors_host_rows(struct fib_tensors *tensors, uint32_t slot, int tensor_index,
                                  const int64_t *rows, int64_t row_count, struct fib_error *err)
{
    struct fib_device *device = tensors->device;
    const struct fib_tensor *tensor = &tensors->problem.tensors[tensor_index];
    const size_t row_bytes = (size_t)tensor->row_elems * fib_dtype_bytes(tensor->dtype);
    const int64_t all_bytes = (int64_t)fib_tensor_bytes(tensor);
    if (device->host_memory || count_runs(rows, row_count) * copy_worth_bytes +
                                       row_count * (int64_t)row_bytes >= all_bytes)
        return fib_tensors_host(tensors, slot, tensor_index, err);
    unsigned char *const buffer = need_buffer(tensors, tensor_index, err);
    const unsigned char *const address = fib_tensors_address(tensors, slot, tensor_index);
    for (int64_t i = 0, next; buffer && i < row_count; i = next) {
        for (next = i + 1; next < row_count && rows[next] == rows[next - 1] + 1; next++)
            ;
        const size_t offset = (size_t)rows[i] * row_bytes;
        if (device->ops->read(device, buffer + offset, address + offset,
                              (size_t)(next - i) * row_bytes, err) != FIB_OK)
            return NULL;
    }
    return buffer;
}

bool fib_tensors_can_scan(const struct fib_tensors *tensors)
{
    return tensors->device->ops->scan != NULL;
}

enum fib_status fib_tensors_scan(struct fib_tensors *tensors, uint32_t slot, int tensor_index,
                                 uint64_t mask, uint64_t pattern, struct fib_scan_hits *hits,
                                 struct fib_error *err)
{
    const struct fib_tensor *tensor = &tensors->problem.tensors[tensor_index];
    return tensors->device->ops->scan(
        tensors->device, fib_tensors_address(tensors, slot, tensor_index),
        fib_dtype_bytes(tensor->dtype), (uint64_t)fib_tensor_elems(tensor), mask, pattern, hits,
        err);
}

enum fib_status fib_tensors_checksum(struct fib_tensors *tensors, uint32_t slot, int tensor_index,
                                     uint64_t *sum, struct fib_error *err)
{
    return tensors->device->ops->checksum(
        tensors->device, fib_tensors_address(tensors, slot, tensor_index),
        fib_tensor_bytes(&tensors->problem.tensors[tensor_index]), sum, err);
}

/* Blames the tensor whose edge is nearer to the damage [first_bad, last_bad]. */
static void report_guard(const struct fib_tensors *tensors, int gap, uint64_t first_bad,
                         uint64_t last_bad, struct fib_verification *verification)
{
    const struct layout *layout = &tensors->layout;
    const int count = tensors->problem.tensor_count;
    const uint64_t past = gap > 0 ? first_bad - layout->end[gap - 1] : UINT64_MAX;
    const uint64_t before = gap < count ? layout->start[gap] - 1 - last_bad : UINT64_MAX;
    const bool is_past = past <= before;
    const uint64_t distance = is_past ? past : before;
    fib_verification_fail(verification, "guard bytes of tensor %s overwritten, %llu byte%s %s",
                          tensors->problem.tensors[is_past ? gap - 1 : gap].name,
                          (unsigned long long)distance + 1, distance == 0 ? "" : "s",
                          is_past ? "past its end" : "before its start");
}

static enum fib_status verify_gap(struct fib_tensors *tensors, uint32_t slot, int gap,
                                  struct fib_verification *verification, struct fib_error *err)
{
    unsigned char found[GAP_MAX_BYTES];
    uint64_t first, last;
    gap_range(tensors, gap, &first, &last);
    const enum fib_status st = tensors->device->ops->read(
        tensors->device, found, slot_base(tensors, slot) + first, (size_t)(last - first), err);
    if (st != FIB_OK || memcmp(found, tensors->guards[gap], (size_t)(last - first)) == 0)
        return st;
    uint64_t first_bad = UINT64_MAX, last_bad = 0;
    for (uint64_t i = first; i < last; i++) {
        if (found[i - first] == tensors->guards[gap][i - first])
            continue;
        if (first_bad == UINT64_MAX)
            first_bad = i;
        last_bad = i;
    }
    if (first_bad != UINT64_MAX)
        report_guard(tensors, gap, first_bad, last_bad, verification);
    return FIB_OK;
}

/* First element of a tensor that differs from its draw, by making the draw again piece by piece;
 * -1 when none does. */
static int64_t first_changed(const struct fib_tensor *tensor, uint64_t key, const void *host)
{
    const int64_t count = fib_tensor_elems(tensor);
    const size_t elem_bytes = fib_dtype_bytes(tensor->dtype);
    unsigned char *piece = fib_zalloc(LOCATE_ELEMS * elem_bytes);
    int64_t found = -1;
    for (int64_t first = 0; first < count && found < 0; first += LOCATE_ELEMS) {
        const int64_t length = count - first < LOCATE_ELEMS ? count - first : LOCATE_ELEMS;
        if (tensor->fill.kind != FIB_FILL_NONE)
            fib_fill_range(&tensor->fill, tensor->dtype, key, (uint64_t)first, (size_t)length,
                           piece);
        const unsigned char *have = (const unsigned char *)host + (size_t)first * elem_bytes;
        for (int64_t i = 0; i < length && found < 0; i++)
            if (memcmp(have + (size_t)i * elem_bytes, piece + (size_t)i * elem_bytes, elem_bytes) !=
                0)
                found = first + i;
    }
    free(piece);
    return found;
}

static enum fib_status verify_input(struct fib_tensors *tensors, uint32_t slot, int t,
                                    struct fib_verification *verification, struct fib_error *err)
{
    struct fib_device *device = tensors->device;
    const struct fib_tensor *tensor = &tensors->problem.tensors[t];
    const uint32_t draw = tensors->slot_draw[slot];
    const struct draw_sums *sums = find_sums(tensors, draw);
    uint64_t sum = 0;
    const enum fib_status st = device->ops->checksum(device, fib_tensors_address(tensors, slot, t),
                                                     fib_tensor_bytes(tensor), &sum, err);
    if (st != FIB_OK || (sums && sum == sums->sum[t]))
        return st;
    const void *host = fib_tensors_host(tensors, slot, t, err);
    if (!host)
        return err && err->status != FIB_OK ? err->status : FIB_ERR_DEVICE;
    const int64_t at = first_changed(tensor, fib_fill_key(tensors->seed, tensor->name, draw), host);
    fib_verification_fail(verification, "input %s was changed, first at element %lld", tensor->name,
                          (long long)at);
    return FIB_OK;
}

/* Most slots are copies of slot 0: where the device can hold them against it in one go, only the
 * first that differs is looked at more closely. */
static enum fib_status find_suspect(struct fib_tensors *tensors, uint32_t *suspect,
                                    struct fib_error *err)
{
    const struct layout *layout = &tensors->layout;
    struct fib_span written[FIB_MAX_TENSORS];
    int count = 0;
    for (int t = 0; t < tensors->problem.tensor_count; t++)
        if (fib_tensor_is_written(&tensors->problem.tensors[t]))
            written[count++] = (struct fib_span){layout->start[t], layout->end[t]};
    return tensors->device->ops->compare_slots(tensors->device, tensors->base, layout->stride,
                                               tensors->slot_count, written, count, suspect, err);
}

static bool one_draw(const struct fib_tensors *tensors)
{
    for (uint32_t slot = 1; slot < tensors->slot_count; slot++)
        if (tensors->slot_draw[slot] != tensors->slot_draw[0])
            return false;
    return true;
}

enum fib_status fib_tensors_verify_all(struct fib_tensors *tensors, uint32_t *slot,
                                       struct fib_verification *verification, struct fib_error *err)
{
    enum fib_status st = fib_tensors_verify(tensors, 0, verification, err);
    uint32_t first = 1, last = tensors->slot_count;
    *slot = 0;
    if (st == FIB_OK && tensors->device->ops->compare_slots && one_draw(tensors)) {
        st = find_suspect(tensors, &first, err);
        last = first < last ? first + 1 : first;
    }
    for (uint32_t s = first; s < last && st == FIB_OK && !verification->failed; s++) {
        *slot = s;
        st = fib_tensors_verify(tensors, s, verification, err);
    }
    return st;
}

enum fib_status fib_tensors_verify(struct fib_tensors *tensors, uint32_t slot,
                                   struct fib_verification *verification, struct fib_error *err)
{
    enum fib_status st = FIB_OK;
    for (int gap = 0; gap <= tensors->problem.tensor_count && st == FIB_OK; gap++)
        st = verify_gap(tensors, slot, gap, verification, err);
    for (int t = 0; t < tensors->problem.tensor_count && st == FIB_OK; t++)
        if (is_read_only(&tensors->problem.tensors[t]))
            st = verify_input(tensors, slot, t, verification, err);
    return st;
}
