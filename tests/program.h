/* The program's own tables and lines parsed against a registry, for every test; needs no cmocka. */
#ifndef FIB_TESTS_PROGRAM_H
#define FIB_TESTS_PROGRAM_H

#include "core/plan.h"
#include "core/registry.h"

/* All families, backends, labels and models of the program. */
struct fib_registry program_registry(void);

/* Parses a command line written as one string (shell quoting). *plan is to be freed with
 * fib_plan_free(); on failure it is left alone and *err holds the sentence. */
enum fib_status program_parse(const struct fib_registry *registry, const char *line,
                              struct fib_plan **plan, struct fib_error *err);

#endif
