/* --only: an expression over the flags of a case.
 *
 *   expr  := and ("or" and)*        and := not ("and" not)*       not := "not" not | term
 *   term  := "(" expr ")" | operand op operand | name
 *   op    := == != < <= > >= =~
 *
 * An operand is a flag's name or "routine", a number, a quoted text or a bare word (a word on the
 * right that is no flag of the case is a text). A name alone holds when the flag is set and not
 * off. Numbers compare as numbers; texts compare without case, =~ asks whether the left text holds
 * the right one. A comparison with a flag that the routine lacks, or that is unset, does not hold,
 * whatever the operator. */
#ifndef FIB_CORE_ONLY_H
#define FIB_CORE_ONLY_H

#include <stdbool.h>

#include "core/case.h"
#include "core/registry.h"
#include "core/status.h"

struct fib_arena;
struct fib_only;

/* Parses and makes sure that every flag named on the left is known to some routine. Sentences name
 * the column. */
enum fib_status fib_only_parse(const char *text, const struct fib_registry *registry,
                               struct fib_arena *arena, const struct fib_only **only,
                               struct fib_error *err);
bool fib_only_holds(const struct fib_only *only, const struct fib_case *kase);

#endif
