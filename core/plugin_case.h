/* Cases and problems in the structs of include/fib_plugin.h, and back. */
#ifndef FIB_CORE_PLUGIN_CASE_H
#define FIB_CORE_PLUGIN_CASE_H

#include "core/device.h"
#include "core/problem.h"
#include "include/fib_plugin.h"

struct fib_arena;
struct fib_case;

/* The case with the routine's flags and, unless NULL, the problem's tensors; all in `arena`. The
 * device may be NULL: then it says CPU. */
const struct fib_plugin_case *fib_plugin_case_make(const struct fib_case *kase,
                                                   const struct fib_problem *problem,
                                                   const struct fib_device *device,
                                                   struct fib_arena *arena);

/* Takes over what a plug-in described, after checking that it is a problem at all: names, shapes,
 * types, rows, and work that tensors of these sizes can have. The sentence names tensor and value.
 * Without a reference nothing is held against one: no rows, no checks of values. */
enum fib_status fib_plugin_problem_take(const struct fib_plugin_problem *described, double flops,
                                        double bytes, bool has_reference,
                                        struct fib_problem *problem, struct fib_error *err);

#endif
