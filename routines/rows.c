/* Reading flags by name and the rules on them that several families share. */
#include "routines/rows.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static const struct fib_value *value_of(const struct fib_case *kase, const char *flag)
{
    const struct fib_value *value = fib_case_value(kase, flag);
    assert(value && "a rule names a flag that the routine does not have");
    return value;
}

int64_t fib_rows_i64(const struct fib_case *kase, const char *flag)
{
    const struct fib_value *value = value_of(kase, flag);
    return value->set ? value->i64 : FIB_UNSET_I64;
}

double fib_rows_f64(const struct fib_case *kase, const char *flag)
{
    const struct fib_value *value = value_of(kase, flag);
    return value->set ? value->f64 : NAN;
}

const char *fib_rows_text(const struct fib_case *kase, const char *flag)
{
    const struct fib_value *value = value_of(kase, flag);
    return value->set ? value->text : NULL;
}

bool fib_rows_on(const struct fib_case *kase, const char *flag)
{
    return fib_rows_is(kase, flag, "True");
}

bool fib_rows_is(const struct fib_case *kase, const char *flag, const char *text)
{
    const char *have = fib_rows_text(kase, flag);
    return have && strcmp(have, text) == 0;
}

enum fib_status fib_rows_at_most(const struct fib_case *kase, const char *flag, const char *limit,
                                 struct fib_error *err)
{
    const int64_t value = fib_rows_i64(kase, flag), most = fib_rows_i64(kase, limit);
    if (value == FIB_UNSET_I64 || most == FIB_UNSET_I64 || value <= most)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_USAGE, "--%s %" PRId64 ": must be at most --%s (%" PRId64 ")",
                    flag, value, limit, most);
}

enum fib_status fib_rows_multiple_of_flag(const struct fib_case *kase, const char *flag,
                                          const char *divisor, struct fib_error *err)
{
    const int64_t value = fib_rows_i64(kase, flag), unit = fib_rows_i64(kase, divisor);
    if (value == FIB_UNSET_I64 || unit == FIB_UNSET_I64 || (unit > 0 && value % unit == 0))
        return FIB_OK;
    return fib_fail(err, FIB_ERR_USAGE,
                    "--%s %" PRId64 ": must be a multiple of --%s (%" PRId64 ")", flag, value,
                    divisor, unit);
}

enum fib_status fib_rows_multiple_of(const struct fib_case *kase, const char *flag, int64_t divisor,
                                     const char *why, struct fib_error *err)
{
    const int64_t value = fib_rows_i64(kase, flag);
    if (value == FIB_UNSET_I64 || value % divisor == 0)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_USAGE, "--%s %" PRId64 ": must be a multiple of %" PRId64 " (%s)",
                    flag, value, divisor, why);
}

enum fib_status fib_rows_exactly(const struct fib_case *kase, const char *flag, int64_t value,
                                 const char *why, struct fib_error *err)
{
    const int64_t have = fib_rows_i64(kase, flag);
    if (have == FIB_UNSET_I64 || have == value)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_USAGE, "--%s %" PRId64 ": must be %" PRId64 " (%s)", flag, have,
                    value, why);
}
