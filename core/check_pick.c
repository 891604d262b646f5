/* Which rows the oracle computes: all of a small problem, a seeded sample of a large one. */
#include <math.h>
#include <stdlib.h>

#include "core/check.h"
#include "core/element.h"

enum { SAMPLE_ROWS = 64, SAMPLE_ROWS_DEAR = 16 };
/* Fresh memory and a comparison cost an element as much time as 12 operations of the reference.
 * That may take a 48th of the budget, and on machines of many cores no more than 64 MiB. */
static const double flops_per_elem = 12 * 48, most_elems = 0x1p22;

/* The rows chosen so far, and a stream of random numbers. */
struct picker {
    int64_t *rows;
    int64_t count, wanted, row_count;
    uint64_t state;
};

/* Elements of all outputs that one oracle row fills. */
static double row_elems(const struct fib_problem *problem)
{
    double elems = 0;
    for (int t = 0; t < problem->tensor_count; t++)
        if (problem->tensors[t].check != FIB_CHECK_NONE)
            elems += (double)problem->tensors[t].row_elems;
    return fmax(elems, 1);
}

/* Rows of a sample: 64, fewer where they are dear, more where they cost next to nothing. */
static int64_t sample_rows(const struct fib_problem *problem, double affordable, double elems)
{
    if (!(affordable >= SAMPLE_ROWS))
        return affordable > SAMPLE_ROWS_DEAR ? (int64_t)affordable : SAMPLE_ROWS_DEAR;
    const double cheap = fmin(affordable / 10, elems / row_elems(problem));
    return cheap > SAMPLE_ROWS ? (int64_t)cheap : SAMPLE_ROWS;
}

int64_t fib_check_row_limit(const struct fib_problem *problem, double flops_budget)
{
    const int64_t rows = problem->row_count;
    const double elems = fmin(most_elems, flops_budget / flops_per_elem);
    if (rows <= 0)
        return 0;
    if ((double)rows * problem->row_flops <= flops_budget &&
        (double)rows * row_elems(problem) <= elems)
        return rows;
    const int64_t sample = sample_rows(problem, flops_budget / problem->row_flops, elems);
    return sample < rows ? sample : rows;
}

/* splitmix64, one step. */
static uint64_t next_random(struct picker *picker)
{
    return fib_mix64(picker->state += fib_weyl_step);
}

static bool has_row(const struct picker *picker, int64_t row)
{
    for (int64_t i = 0; i < picker->count; i++)
        if (picker->rows[i] == row)
            return true;
    return false;
}

static void take(struct picker *picker, int64_t row)
{
    if (picker->count < picker->wanted && !has_row(picker, row))
        picker->rows[picker->count++] = row;
}

/* First and last row of one batch entry. */
static void take_entry(struct picker *picker, int64_t entry, int64_t entry_rows)
{
    const int64_t first = entry * entry_rows;
    const int64_t end = first + entry_rows;
    take(picker, first);
    take(picker, (end < picker->row_count ? end : picker->row_count) - 1);
}

/* Boundaries get half of the sample: all of them where they fit, else those of the first two and
 * the last entry and of entries drawn at random. */
static void take_boundaries(struct picker *picker, int64_t entry_rows)
{
    if (entry_rows <= 0)
        return;
    const int64_t entries = (picker->row_count + entry_rows - 1) / entry_rows;
    const int64_t share = picker->wanted / 2;
    if (2 * entries <= share) {
        for (int64_t entry = 0; entry < entries; entry++)
            take_entry(picker, entry, entry_rows);
        return;
    }
    take_entry(picker, 0, entry_rows);
    if (entries > 1)
        take_entry(picker, 1, entry_rows);
    take_entry(picker, entries - 1, entry_rows);
    /* Bounded: a draw may hit an entry that is there already. */
    for (int64_t tries = 0; tries < share && picker->count + 1 < share; tries++)
        take_entry(picker, (int64_t)(next_random(picker) % (uint64_t)entries), entry_rows);
}

static void take_random(struct picker *picker)
{
    while (picker->count < picker->wanted) {
        int64_t row = (int64_t)(next_random(picker) % (uint64_t)picker->row_count);
        while (has_row(picker, row)) /* step on, so that this ends however full the sample is */
            row = (row + 1) % picker->row_count;
        take(picker, row);
    }
}

static int compare_i64(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

int64_t fib_check_pick_rows(const struct fib_problem *problem, double flops_budget, uint64_t seed,
                            int64_t *rows)
{
    const int64_t wanted = fib_check_row_limit(problem, flops_budget);
    if (wanted <= 0)
        return 0;
    if (wanted == problem->row_count) {
        for (int64_t i = 0; i < wanted; i++)
            rows[i] = i;
        return wanted;
    }
    struct picker picker = {
        .rows = rows, .wanted = wanted, .row_count = problem->row_count, .state = seed};
    take(&picker, 0);
    take(&picker, problem->row_count - 1);
    take_boundaries(&picker, problem->boundary_row);
    take_random(&picker);
    qsort(rows, (size_t)picker.count, sizeof(*rows), compare_i64);
    return picker.count;
}
