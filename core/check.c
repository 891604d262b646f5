/* The checker: outputs against oracle rows, in order of severity. */
#include "core/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/check_place.h"

/* Share of codes that may be one step off. */
static const double code_step_share = 1e-3;

/* Counts of one kind of fault and where the first was. */
struct faults {
    int64_t count;
    int64_t first;   /* element of the whole tensor */
    double expected; /* at `first` */
    double limit;    /* at `first` */
};

/* One call of fib_check_rows(). */
struct comparison {
    const struct fib_tensor *tensor;
    const void *output;
    double roundoff, half_tiny, accumulate; /* of the tolerance */
    double max;             /* largest finite output, where the format saturates; else infinity */
    struct faults special;  /* NaN or infinity in one and not in the other */
    struct faults beyond;   /* past the limit, or more than one code off */
    struct faults one_step; /* one code off */
    double diff_sq, ref_sq, terms_sq, terms_max;
    int64_t compared_count;
    struct fib_verification *verification;
};

void fib_verification_fail(struct fib_verification *verification, const char *format, ...)
{
    if (verification->failed)
        return;
    verification->failed = true;
    va_list args;
    va_start(args, format);
    vsnprintf(verification->message, sizeof(verification->message), format, args);
    va_end(args);
}

double fib_verification_rel_l2(const struct fib_verification *verification)
{
    if (verification->diff_sq == 0.0)
        return 0.0; /* 0 / 0 would be NaN */
    return sqrt(verification->diff_sq / verification->ref_sq);
}

static void note(struct faults *faults, int64_t element, double expected, double limit)
{
    if (faults->count++ == 0) {
        faults->first = element;
        faults->expected = expected;
        faults->limit = limit;
    }
}

/* fmax() drops a NaN; an error that is NaN must stay visible. */
static double max_keeping_nan(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}

static void add_error(struct comparison *c, double out, double expected)
{
    struct fib_verification *const v = c->verification;
    const double diff = fabs(out - expected);
    v->max_abs_err = max_keeping_nan(v->max_abs_err, diff);
    if (expected != 0.0 || isnan(diff))
        v->max_rel_err = max_keeping_nan(v->max_rel_err, diff / fabs(expected));
    c->diff_sq += diff * diff;
    c->ref_sq += expected * expected;
}

/* Distance in steps between two finite codes; both zeros are the same place. */
static int64_t code_steps(enum fib_dtype dtype, const void *output, int64_t element,
                          double expected)
{
    uint64_t expected_code = 0;
    fib_dtype_store(dtype, &expected_code, 0, expected);
    if (!fib_dtype_is_float(dtype)) {
        const double diff = fib_dtype_load(dtype, output, (size_t)element) -
                            fib_dtype_load(dtype, &expected_code, 0);
        return (int64_t)fmin(fabs(diff), 0x1p62);
    }
    const int64_t a = fib_place_of_code(dtype, output, element);
    const int64_t b = fib_place_of_code(dtype, &expected_code, 0);
    return a > b ? a - b : b - a;
}

static void compare_codes(struct comparison *c, int64_t element, double out, double expected)
{
    add_error(c, out, expected);
    if (out == expected)
        return;
    const int64_t steps = code_steps(c->tensor->dtype, c->output, element, expected);
    if (steps > 1)
        note(&c->beyond, element, expected, 0.0);
    else if (steps == 1)
        note(&c->one_step, element, expected, 0.0);
}

static void compare_floats(struct comparison *c, int64_t element, double out, double expected,
                           double terms)
{
    add_error(c, out, expected);
    c->terms_sq += terms * terms;
    c->terms_max = fmax(c->terms_max, terms);
    const double rounding = fmax(c->roundoff * fabs(expected), c->half_tiny);
    const double limit = rounding + 4.0 * c->accumulate * terms;
    if (!(fabs(out - expected) <= limit))
        note(&c->beyond, element, expected, limit);
}

/* Does a NaN or infinity on either side belong there? What overflows the output's format, within
 * the tolerance, may be infinite. */
static bool special_agrees(const struct comparison *c, double out, double expected, double terms)
{
    if (isnan(out) || isnan(expected))
        return isnan(out) && isnan(expected);
    if (isinf(expected))
        return out == fib_dtype_round(c->tensor->dtype, expected);
    const double slack = c->tensor->check == FIB_CHECK_FLOAT ? 4.0 * c->accumulate * terms : 0.0;
    const double reached = fib_dtype_round(c->tensor->dtype, expected + copysign(slack, out));
    return out == reached;
}

static void compare_element(struct comparison *c, int64_t element, double out, double reference,
                            double terms)
{
    c->compared_count++;
    const double expected = fabs(reference) > c->max ? copysign(c->max, reference) : reference;
    if (isfinite(out) && isfinite(expected)) {
        if (c->tensor->check == FIB_CHECK_CODES)
            compare_codes(c, element, out, expected);
        else
            compare_floats(c, element, out, expected, terms);
    } else if (!special_agrees(c, out, expected, terms)) {
        note(&c->special, element, expected, 0.0);
        add_error(c, out, expected);
    }
}

static void compare_row(struct comparison *c, int64_t row, const double *value, const double *terms)
{
    enum { BLOCK = 512 };
    double out[BLOCK];
    const int64_t row_elems = c->tensor->row_elems;
    const size_t size_bytes = fib_dtype_bytes(c->tensor->dtype);
    for (int64_t done = 0; done < row_elems; done += BLOCK) {
        const int64_t n = row_elems - done < BLOCK ? row_elems - done : BLOCK;
        const int64_t first = row * row_elems + done;
        fib_dtype_to_f64(c->tensor->dtype, (const char *)c->output + (size_t)first * size_bytes,
                         out, (size_t)n);
        for (int64_t i = 0; i < n; i++)
            compare_element(c, first + i, out[i], value[done + i], terms ? terms[done + i] : 0.0);
    }
}

/* ---- verdict of one tensor ---- */

/* "first at [17, 4095]: 0x5e (1.5), expected 1.375" */
static void describe_first(const struct comparison *c, const struct faults *faults, char *text,
                           size_t size)
{
    char place[96], found[64];
    fib_place_text(c->tensor, faults->first, place, sizeof(place));
    fib_place_value_text(c->tensor->dtype, c->output, faults->first, found, sizeof(found));
    if (c->tensor->check == FIB_CHECK_CODES) {
        uint64_t code = 0;
        char wanted[64];
        fib_dtype_store(c->tensor->dtype, &code, 0, faults->expected);
        fib_place_value_text(c->tensor->dtype, &code, 0, wanted, sizeof(wanted));
        snprintf(text, size, "first at %s: %s, expected %s", place, found, wanted);
    } else {
        snprintf(text, size, "first at %s: %s, expected %.9g", place, found, faults->expected);
    }
}

static void fail_elements(const struct comparison *c)
{
    struct fib_verification *const v = c->verification;
    const char *const name = c->tensor->name;
    const long long count = (long long)c->compared_count;
    char first[256];
    if (c->special.count > 0) {
        describe_first(c, &c->special, first, sizeof(first));
        fib_verification_fail(v, "%s: %lld of %lld elements are NaN or infinite out of place, %s",
                              name, (long long)c->special.count, count, first);
        return;
    }
    describe_first(c, &c->beyond, first, sizeof(first));
    if (c->tensor->check == FIB_CHECK_CODES)
        fib_verification_fail(v, "%s: %lld of %lld codes differ by more than one step, %s", name,
                              (long long)c->beyond.count, count, first);
    else
        fib_verification_fail(v, "%s: %lld of %lld elements beyond the limit, %s (limit %.3g)",
                              name, (long long)c->beyond.count, count, first, c->beyond.limit);
}

/* Codes one step off, as many as the share allows. One is always allowed: in an output of a few
 * hundred codes a single tie that float32 decides the other way is no fault. */
static int64_t allowed_steps(int64_t compared_count)
{
    const int64_t share = (int64_t)(code_step_share * (double)compared_count);
    return share > 1 ? share : 1;
}

static bool too_many_steps(const struct comparison *c)
{
    return c->one_step.count > allowed_steps(c->compared_count);
}

static void fail_steps(const struct comparison *c)
{
    char first[256];
    describe_first(c, &c->one_step, first, sizeof(first));
    fib_verification_fail(
        c->verification, "%s: %lld of %lld codes (%.2g %%) differ by one step, allowed %.2g %%, %s",
        c->tensor->name, (long long)c->one_step.count, (long long)c->compared_count,
        100.0 * (double)c->one_step.count / (double)c->compared_count, 100.0 * code_step_share,
        first);
}

/* Norm of the accumulated error: what all elements may reach together. The tolerance leaves a
 * single element 4 u_acc of its terms; that many at once are not that unlucky, so beyond the few
 * elements with the largest terms half of it must do. */
static double accumulated_limit(const struct comparison *c)
{
    const double few = 16.0;
    const double all_sq = 16.0 * c->terms_sq;
    const double most_sq = 4.0 * c->terms_sq + 12.0 * few * c->terms_max * c->terms_max;
    return c->accumulate * sqrt(fmin(all_sq, most_sq));
}

/* The global rule: rounding moves the whole by at most u of its norm, a code step by 2 u. It
 * catches what is a little wrong everywhere and nowhere wrong enough. */
static double distance_limit(const struct comparison *c)
{
    const double near_zero = c->half_tiny * sqrt((double)c->compared_count);
    const double rounding = c->roundoff * sqrt(c->ref_sq) + near_zero;
    if (c->tensor->check == FIB_CHECK_FLOAT)
        return rounding + accumulated_limit(c);
    if (fib_dtype_is_float(c->tensor->dtype))
        return 2.0 * rounding;
    return sqrt((double)c->one_step.count);
}

static void judge(struct comparison *c)
{
    struct fib_verification *const v = c->verification;
    const double distance = sqrt(c->diff_sq), limit = distance_limit(c);
    v->mismatch_count += c->special.count + c->beyond.count;
    if (c->special.count > 0 || c->beyond.count > 0) {
        fail_elements(c);
    } else if (too_many_steps(c)) {
        v->mismatch_count += c->one_step.count;
        fail_steps(c);
    } else if (!(distance <= limit * (1.0 + 1e-9))) { /* the sums are rounded, too */
        fib_verification_fail(v, "%s: distance %.3g from the reference as a whole (limit %.3g)",
                              c->tensor->name, distance, limit);
    }
}

void fib_check_rows(const struct fib_problem *problem, int tensor_index, const void *output,
                    const int64_t *rows, int64_t row_count, const double *value,
                    const double *terms, struct fib_verification *verification)
{
    const struct fib_tensor *const tensor = &problem->tensors[tensor_index];
    const enum fib_dtype dtype = tensor->dtype;
    if (tensor->check == FIB_CHECK_NONE || row_count <= 0)
        return;
    const bool saturates = isfinite(fib_dtype_round(dtype, INFINITY));
    struct comparison c = {
        .tensor = tensor,
        .output = output,
        .roundoff = fib_dtype_unit_roundoff(dtype),
        .half_tiny = fib_dtype_half_tiny(dtype),
        .accumulate = problem->accumulate_roundoff,
        .max = saturates ? fib_dtype_max(dtype) : INFINITY,
        .verification = verification,
    };
    for (int64_t i = 0; i < row_count; i++)
        compare_row(&c, rows[i], value + i * tensor->row_elems,
                    terms ? terms + i * tensor->row_elems : NULL);
    if (row_count > verification->checked_rows)
        verification->checked_rows = row_count;
    verification->compared_count += c.compared_count;
    verification->diff_sq += c.diff_sq;
    verification->ref_sq += c.ref_sq;
    judge(&c);
}
