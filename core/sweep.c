/* Sweeps: value lists and ranges of one flag, and walking the product of several. */
#include "core/sweep.h"

#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "core/suggest.h"
#include "core/text.h"

bool fib_sweep_allowed(const struct fib_option *option)
{
    return option->kind == FIB_OPT_I64 || option->kind == FIB_OPT_F64 ||
           option->kind == FIB_OPT_CHOICE || option->kind == FIB_OPT_DTYPE;
}

/* ---- one range ---- */

/* "first:last[:step]" in its parts; a '*' before the step makes it a factor. */
struct range {
    const char *whole;
    const char *first, *last, *step;
    bool multiply;
};

struct list {
    const struct fib_option *option;
    struct fib_value *values;
    size_t count, capacity, limit;
    struct fib_arena *arena;
    struct fib_error *err;
};

static enum fib_status fail_range(const struct list *list, const char *text, const char *reason)
{
    return fib_fail(list->err, FIB_ERR_USAGE, "--%s %s: %s", list->option->name,
                    fib_shown(text, list->arena), reason);
}

static enum fib_status split_range(const struct list *list, const char *text, struct range *range)
{
    char *copy = fib_arena_strdup(list->arena, text);
    char *last = strchr(copy, ':');
    *last++ = '\0';
    char *step = strchr(last, ':');
    if (step)
        *step++ = '\0';
    if (step && strchr(step, ':'))
        return fail_range(list, text,
                          "a range is first:last, first:last:step or first:last:*factor");
    *range = (struct range){.whole = text, .first = copy, .last = last};
    range->multiply = step && *step == '*';
    range->step = step ? step + range->multiply : "1";
    return FIB_OK;
}

/* Room for `more` values, checked before any is made. */
static enum fib_status reserve(struct list *list, uint64_t more, const char *text)
{
    if (more > list->limit - list->count)
        return fail_range(list, text,
                          fib_arena_printf(list->arena, "more than %zu values", list->limit));
    const size_t wanted = list->count + (size_t)more;
    if (wanted <= list->capacity)
        return FIB_OK;
    list->capacity = wanted > 2 * list->capacity ? wanted : 2 * list->capacity;
    struct fib_value *grown = fib_arena_array(list->arena, list->capacity, sizeof(*grown));
    if (list->count)
        memcpy(grown, list->values, list->count * sizeof(*grown));
    list->values = grown;
    return FIB_OK;
}

static enum fib_status add_value(struct list *list, const char *text)
{
    struct fib_value *value = &list->values[list->count];
    value->given = true;
    const enum fib_status st = fib_option_parse(list->option, text, list->arena, value, list->err);
    if (st == FIB_OK)
        list->count++;
    return st;
}

/* Values of first, first + step, ... or first * step, ... up to last. Distances are computed
 * without sign, so that the whole span of int64 fits. */
static uint64_t i64_range_count(int64_t first, int64_t last, int64_t step, bool multiply)
{
    if (!multiply) /* 0 for the one span that does not fit */
        return ((uint64_t)last - (uint64_t)first) / (uint64_t)step + 1;
    uint64_t count = 1;
    for (int64_t value = first; value <= last / step; value *= step)
        count++;
    return count;
}

static enum fib_status check_i64_range(const struct list *list, const struct range *range,
                                       int64_t first, int64_t last, int64_t step)
{
    if (first > last)
        return fail_range(list, range->whole, "the range ends before it starts");
    if (!range->multiply && step < 1)
        return fail_range(list, range->whole, "the step must be at least 1");
    if (range->multiply && step < 2)
        return fail_range(list, range->whole, "the factor must be at least 2");
    if (range->multiply && first < 1)
        return fail_range(list, range->whole, "a range with a factor must start at 1 or more");
    return FIB_OK;
}

static enum fib_status add_i64_range(struct list *list, const struct range *range)
{
    int64_t first = 0, last = 0, step = 0;
    if (!fib_parse_i64(range->first, &first) || !fib_parse_i64(range->last, &last) ||
        !fib_parse_i64(range->step, &step))
        return fail_range(list, range->whole, "the parts of a range must be integers");
    enum fib_status st = check_i64_range(list, range, first, last, step);
    if (st != FIB_OK)
        return st;
    const uint64_t count = i64_range_count(first, last, step, range->multiply);
    st = reserve(list, count ? count : UINT64_MAX, range->whole);
    int64_t value = first;
    for (uint64_t i = 0; i < count && st == FIB_OK; i++) {
        st = add_value(list, fib_arena_printf(list->arena, "%lld", (long long)value));
        if (i + 1 < count)
            value = range->multiply ? value * step : value + step;
    }
    return st;
}

/* Digits after the point, or -1 when the text is no plain decimal. */
static int decimals(const char *text)
{
    if (strpbrk(text, "eExXnN"))
        return -1;
    const char *point = strchr(text, '.');
    return point ? (int)strlen(point + 1) : 0;
}

/* first + i * step without the noise of binary fractions: 0.1:0.5:0.1 holds 0.3, not
 * 0.30000000000000004. Plain decimals are stepped as integers and scaled once. */
static double f64_step(const struct range *range, double first, double step, double i)
{
    const int a = decimals(range->first), b = decimals(range->step);
    const int digits = a > b ? a : b;
    if (a < 0 || b < 0 || digits > 9)
        return first + i * step;
    double scale = 1;
    for (int d = 0; d < digits; d++)
        scale *= 10;
    return (rint(first * scale) + i * rint(step * scale)) / scale;
}

static double f64_range_count(double first, double last, double step, bool multiply)
{
    const double steps = multiply ? log(last / first) / log(step) : (last - first) / step;
    return floor(steps + 1e-9) + 1;
}

static enum fib_status check_f64_range(const struct list *list, const struct range *range,
                                       double first, double last, double step)
{
    if (!isfinite(first) || !isfinite(last) || !isfinite(step))
        return fail_range(list, range->whole, "the parts of a range must be finite");
    if (first > last)
        return fail_range(list, range->whole, "the range ends before it starts");
    if (!range->multiply && step <= 0)
        return fail_range(list, range->whole, "the step must be more than 0");
    if (range->multiply && step <= 1)
        return fail_range(list, range->whole, "the factor must be more than 1");
    if (range->multiply && first <= 0)
        return fail_range(list, range->whole, "a range with a factor must start above 0");
    return FIB_OK;
}

static enum fib_status add_f64_range(struct list *list, const struct range *range)
{
    double first = 0, last = 0, step = 0;
    if (!fib_parse_f64(range->first, &first) || !fib_parse_f64(range->last, &last) ||
        !fib_parse_f64(range->step, &step))
        return fail_range(list, range->whole, "the parts of a range must be numbers");
    enum fib_status st = check_f64_range(list, range, first, last, step);
    if (st != FIB_OK)
        return st;
    const double count = f64_range_count(first, last, step, range->multiply);
    st = reserve(list, count < 1e18 ? (uint64_t)count : UINT64_MAX, range->whole);
    struct fib_text text = {0};
    for (uint64_t i = 0; (double)i < count && st == FIB_OK; i++) {
        const double n = (double)i;
        fib_text_clear(&text);
        fib_text_add_f64(&text,
                         range->multiply ? first * pow(step, n) : f64_step(range, first, step, n));
        st = add_value(list, fib_text_chars(&text));
    }
    fib_text_free(&text);
    return st;
}

/* ---- lists ---- */

static enum fib_status add_part(struct list *list, const char *part, const char *whole)
{
    const enum fib_option_kind kind = list->option->kind;
    if (!*part)
        return fail_range(list, whole, "a value is missing beside a comma");
    if (strchr(part, ':') && (kind == FIB_OPT_I64 || kind == FIB_OPT_F64)) {
        struct range range = {0};
        const enum fib_status st = split_range(list, part, &range);
        if (st != FIB_OK)
            return st;
        return kind == FIB_OPT_I64 ? add_i64_range(list, &range) : add_f64_range(list, &range);
    }
    const enum fib_status st = reserve(list, 1, whole);
    return st == FIB_OK ? add_value(list, part) : st;
}

static enum fib_status parse_list(struct list *list, const char *text)
{
    char *copy = fib_arena_strdup(list->arena, text);
    for (char *part = copy; part;) {
        char *comma = strchr(part, ',');
        if (comma)
            *comma++ = '\0';
        const enum fib_status st = add_part(list, part, text);
        if (st != FIB_OK)
            return st;
        part = comma;
    }
    return FIB_OK;
}

enum fib_status fib_sweep_parse(const struct fib_option *option, const char *text, size_t limit,
                                struct fib_arena *arena, struct fib_value **values, size_t *count,
                                struct fib_error *err)
{
    struct list list = {.option = option, .limit = limit, .arena = arena, .err = err};
    const bool swept = fib_sweep_allowed(option) && strpbrk(text, ",:");
    enum fib_status st = FIB_OK;
    if (swept)
        st = parse_list(&list, text);
    else if ((st = reserve(&list, 1, text)) == FIB_OK)
        st = add_value(&list, text);
    *values = list.values;
    *count = list.count;
    return st;
}

/* ---- combinations ---- */

size_t fib_axes_count(const struct fib_axis *axes, size_t axis_count, size_t limit)
{
    size_t product = 1;
    for (size_t i = 0; i < axis_count; i++) {
        if (axes[i].count > limit / product)
            return limit + 1;
        product *= axes[i].count;
    }
    return product;
}

void fib_axes_pick(const struct fib_axis *axes, size_t axis_count, size_t index,
                   struct fib_value *values)
{
    for (size_t i = axis_count; i-- > 0;) {
        const size_t step = index % axes[i].count;
        index /= axes[i].count;
        for (size_t j = 0; j < axes[i].sweep_count; j++)
            values[axes[i].sweeps[j].row] = axes[i].sweeps[j].values[step];
    }
}
