/* Rules on flags that several families share. */
#include "routines/rows.h"

#include <inttypes.h>

enum fib_status fib_rows_at_most(const struct fib_case *kase, const char *flag, const char *limit,
                                 struct fib_error *err)
{
    const int64_t value = fib_case_i64(kase, flag), most = fib_case_i64(kase, limit);
    if (value == FIB_UNSET_I64 || most == FIB_UNSET_I64 || value <= most)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_USAGE, "--%s %" PRId64 ": must be at most --%s (%" PRId64 ")",
                    flag, value, limit, most);
}

enum fib_status fib_rows_multiple_of_flag(const struct fib_case *kase, const char *flag,
                                          const char *divisor, struct fib_error *err)
{
    const int64_t value = fib_case_i64(kase, flag), unit = fib_case_i64(kase, divisor);
    if (value == FIB_UNSET_I64 || unit == FIB_UNSET_I64 || (unit > 0 && value % unit == 0))
        return FIB_OK;
    return fib_fail(err, FIB_ERR_USAGE,
                    "--%s %" PRId64 ": must be a multiple of --%s (%" PRId64 ")", flag, value,
                    divisor, unit);
}

enum fib_status fib_rows_multiple_of(const struct fib_case *kase, const char *flag, int64_t divisor,
                                     const char *why, struct fib_error *err)
{
    const int64_t value = fib_case_i64(kase, flag);
    if (value == FIB_UNSET_I64 || value % divisor == 0)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_USAGE, "--%s %" PRId64 ": must be a multiple of %" PRId64 " (%s)",
                    flag, value, divisor, why);
}

enum fib_status fib_rows_exactly(const struct fib_case *kase, const char *flag, int64_t value,
                                 const char *why, struct fib_error *err)
{
    const int64_t have = fib_case_i64(kase, flag);
    if (have == FIB_UNSET_I64 || have == value)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_USAGE, "--%s %" PRId64 ": must be %" PRId64 " (%s)", flag, have,
                    value, why);
}
