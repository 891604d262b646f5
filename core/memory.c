/* Allocation that cannot fail, and arenas for objects that die together. */
#include "core/memory.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn static void give_up(size_t bytes)
{
    fprintf(stderr, "fib-bench: no memory left for %zu bytes of bookkeeping\n", bytes);
    abort();
}

static size_t product(size_t count, size_t item_bytes)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, item_bytes, &bytes))
        give_up(SIZE_MAX);
    return bytes;
}

void *fib_zalloc(size_t bytes)
{
    /* Zero bytes may give NULL, which callers would take for "absent". */
    void *address = calloc(1, bytes ? bytes : 1);
    if (!address)
        give_up(bytes);
    return address;
}

void *fib_zalloc_array(size_t count, size_t item_bytes)
{
    return fib_zalloc(product(count, item_bytes));
}

void *fib_realloc(void *address, size_t bytes)
{
    void *moved = realloc(address, bytes ? bytes : 1);
    if (!moved)
        give_up(bytes);
    return moved;
}

char *fib_strdup(const char *chars)
{
    const size_t size = strlen(chars) + 1;
    char *copy = fib_zalloc(size);
    memcpy(copy, chars, size);
    return copy;
}

enum { BLOCK_BYTES = 16 * 1024 };

struct block {
    struct block *next;
    size_t used, capacity;
    alignas(max_align_t) unsigned char bytes[];
};

struct fib_arena {
    struct block *blocks; /* the head is the one being filled */
};

struct fib_arena *fib_arena_create(void)
{
    return fib_zalloc(sizeof(struct fib_arena));
}

void fib_arena_free(struct fib_arena **arena)
{
    if (!arena || !*arena)
        return;
    struct block *block = (*arena)->blocks;
    while (block) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
    free(*arena);
    *arena = NULL;
}

static struct block *new_block(size_t capacity)
{
    if (capacity > SIZE_MAX - sizeof(struct block))
        give_up(capacity);
    struct block *block = fib_zalloc(sizeof(struct block) + capacity);
    block->capacity = capacity;
    return block;
}

/* A large object gets a block of its own behind the head, so that the head's rest stays usable. */
static void *alloc_large(struct fib_arena *arena, size_t bytes)
{
    struct block *block = new_block(bytes);
    block->used = bytes;
    if (arena->blocks) {
        block->next = arena->blocks->next;
        arena->blocks->next = block;
    } else {
        arena->blocks = block;
    }
    return block->bytes;
}

void *fib_arena_alloc(struct fib_arena *arena, size_t bytes)
{
    const size_t unit = alignof(max_align_t);
    if (bytes > BLOCK_BYTES / 4)
        return alloc_large(arena, bytes);
    const size_t rounded = (bytes + unit - 1) / unit * unit + (bytes ? 0 : unit);
    if (!arena->blocks || arena->blocks->capacity - arena->blocks->used < rounded) {
        struct block *block = new_block(BLOCK_BYTES);
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *address = arena->blocks->bytes + arena->blocks->used;
    arena->blocks->used += rounded;
    return address;
}

void *fib_arena_array(struct fib_arena *arena, size_t count, size_t item_bytes)
{
    return fib_arena_alloc(arena, product(count, item_bytes));
}

char *fib_arena_strndup(struct fib_arena *arena, const char *chars, size_t length)
{
    char *copy = fib_arena_alloc(arena, length + 1);
    if (length > 0)
        memcpy(copy, chars, length);
    return copy;
}

char *fib_arena_strdup(struct fib_arena *arena, const char *chars)
{
    return fib_arena_strndup(arena, chars, strlen(chars));
}

char *fib_arena_printf(struct fib_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int wanted = vsnprintf(NULL, 0, format, args);
    va_end(args);
    const size_t size = wanted < 0 ? 1 : (size_t)wanted + 1;
    char *chars = fib_arena_alloc(arena, size);
    if (wanted >= 0)
        vsnprintf(chars, size, format, again);
    va_end(again);
    return chars;
}
