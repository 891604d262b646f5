/* Shared by the unit tests: cmocka, the full registry, plans from a line. */
#ifndef FIB_TESTS_SUPPORT_H
#define FIB_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "core/plan.h"
#include "core/registry.h"

/* All families, backends, labels and models of the program. */
const struct fib_registry *test_registry(void);

/* Parses a command line written as one string (shell quoting) and fails the test with the error's
 * sentence when it does not parse. Free with fib_plan_free(). */
struct fib_plan *test_plan(const char *line);

/* Parses a command line that must fail; *err holds the sentence. Returns the status. */
enum fib_status test_plan_fails(const char *line, struct fib_error *err);

/* Fails unless `text` contains `part`. */
void assert_contains(const char *text, const char *part);

#endif
