/* Device memory of one case: a ring of slots, each with every tensor of the problem between guard
 * bytes; poison; restoring in-place tensors; proof that inputs were not changed.
 *
 * Slot 0 is filled from the generator, the others are copies. All arms of a case use the same
 * slots, so they see the same bytes at the same addresses. */
#ifndef FIB_CORE_TENSORS_H
#define FIB_CORE_TENSORS_H

#include <stdint.h>

#include "core/check.h"
#include "core/device.h"
#include "core/problem.h"

struct fib_tensors;

/* Poison bytes of the two checked runs: 0xff.. is NaN in every float format here. */
enum { FIB_POISON_A = 0xff, FIB_POISON_B = 0x55 };

/* Bytes of the tensors that count as touched by a call. */
double fib_tensors_footprint(const struct fib_problem *problem);
/* Slots of a cold ring: max(2, ceil(ring_bytes / footprint) + 1) within the device's limit, 2 when
 * the footprint alone passes ring_bytes; 1 when `hot`. *capped tells that a limit cut it. */
uint32_t fib_tensors_ring_slots(const struct fib_problem *problem,
                                const struct fib_device_facts *facts, bool hot, bool *capped);
/* Device bytes a case takes with so many slots, pristine copies and guards included. */
uint64_t fib_tensors_bytes(const struct fib_problem *problem, uint32_t slot_count);

/* Allocates and fills (draw 0). FIB_ERR_OOM before anything is taken when the bytes do not fit
 * into what the device has free. */
enum fib_status fib_tensors_create(struct fib_device *device, const struct fib_problem *problem,
                                   uint64_t seed, uint32_t slot_count, struct fib_tensors **tensors,
                                   struct fib_error *err);
void fib_tensors_free(struct fib_tensors **tensors);

uint32_t fib_tensors_slot_count(const struct fib_tensors *tensors);
void *fib_tensors_address(const struct fib_tensors *tensors, uint32_t slot, int tensor_index);

/* Sets every FIB_OUTPUT of a slot to one byte. */
enum fib_status fib_tensors_poison(struct fib_tensors *tensors, uint32_t slot, int byte,
                                   struct fib_error *err);
/* Copies the pristine content of in-place tensors back into a slot / into slots in this order. */
enum fib_status fib_tensors_restore(struct fib_tensors *tensors, uint32_t slot,
                                    struct fib_error *err);
enum fib_status fib_tensors_restore_slots(struct fib_tensors *tensors, struct fib_stream *stream,
                                          const uint32_t *slots, uint32_t slot_count,
                                          struct fib_error *err);
bool fib_tensors_has_inout(const struct fib_tensors *tensors);
/* Refills inputs and in-place tensors of a slot (and their pristine copy) with another draw. */
enum fib_status fib_tensors_redraw(struct fib_tensors *tensors, uint32_t slot, uint32_t draw,
                                   struct fib_error *err);

/* Makes a slot right again after a backend broke what it must not touch: guards, inputs and
 * in-place tensors of the slot's draw. */
enum fib_status fib_tensors_repair(struct fib_tensors *tensors, uint32_t slot,
                                   struct fib_error *err);

/* Host copy of one tensor of a slot; on host-memory devices the address itself. Valid until the
 * next call on the same tensor index; NULL with *err set on failure. */
const void *fib_tensors_host(struct fib_tensors *tensors, uint32_t slot, int tensor_index,
                             struct fib_error *err);

/* The same where only these rows (sorted, distinct; see struct fib_tensor) are looked at: the other
 * bytes may be undefined. */
const void *fib_tensors_host_rows(struct fib_tensors *tensors, uint32_t slot, int tensor_index,
                                  const int64_t *rows, int64_t row_count, struct fib_error *err);

/* True where a tensor can be scanned without a copy on the host. */
bool fib_tensors_can_scan(const struct fib_tensors *tensors);
/* Elements of one tensor whose bits under `mask` equal `pattern`; only where scanning works. */
enum fib_status fib_tensors_scan(struct fib_tensors *tensors, uint32_t slot, int tensor_index,
                                 uint64_t mask, uint64_t pattern, struct fib_scan_hits *hits,
                                 struct fib_error *err);
/* fib_checksum of one tensor, made where it lies. */
enum fib_status fib_tensors_checksum(struct fib_tensors *tensors, uint32_t slot, int tensor_index,
                                     uint64_t *sum, struct fib_error *err);

/* Waits for everything enqueued on the device's default stream. */
enum fib_status fib_tensors_synchronize(struct fib_tensors *tensors, struct fib_error *err);

/* Guards of a slot intact and inputs of it unchanged since fill or redraw? Failures go into
 * *verification with the tensor's name and the place. */
enum fib_status fib_tensors_verify(struct fib_tensors *tensors, uint32_t slot,
                                   struct fib_verification *verification, struct fib_error *err);
/* The same for all slots; ends at the first one that fails and tells it in *slot. */
enum fib_status fib_tensors_verify_all(struct fib_tensors *tensors, uint32_t *slot,
                                       struct fib_verification *verification,
                                       struct fib_error *err);

#endif
