/* Bookkeeping memory of the program: never NULL, freed in one go.
 *
 * Tensors do not come from here (they are checked against free memory first, core/tensors.h).
 * When the system has no memory left for a few bytes of bookkeeping, the process prints one line
 * and aborts: there is nothing sensible to go on with. */
#ifndef FIB_CORE_MEMORY_H
#define FIB_CORE_MEMORY_H

#include <stddef.h>

/* calloc/realloc that never return NULL; release with free(). */
void *fib_zalloc(size_t bytes);
void *fib_zalloc_array(size_t count, size_t item_bytes);
void *fib_realloc(void *address, size_t bytes);
char *fib_strdup(const char *chars);

/* A set of allocations with one lifetime. */
struct fib_arena;
struct fib_arena *fib_arena_create(void);
/* Accepts NULL; resets the handle. */
void fib_arena_free(struct fib_arena **arena);
/* Zeroed, aligned for any object. */
void *fib_arena_alloc(struct fib_arena *arena, size_t bytes);
void *fib_arena_array(struct fib_arena *arena, size_t count, size_t item_bytes);
char *fib_arena_strdup(struct fib_arena *arena, const char *chars);
char *fib_arena_strndup(struct fib_arena *arena, const char *chars, size_t length);
char *fib_arena_printf(struct fib_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
