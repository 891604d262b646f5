/* JSON values, the program's record format. The one user of cJSON.
 *
 * A record (one result, one environment block) is a JSON object built with the setters below and
 * read back with the getters, also after a trip through a file. Numbers are doubles; integers up to
 * 2^53 are exact. NaN and infinities become null. */
#ifndef FIB_CORE_JSON_H
#define FIB_CORE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct fib_json; /* an object, array or scalar */

struct fib_json *fib_json_object(void);
struct fib_json *fib_json_array(void);
/* Accepts NULL; resets the handle; frees the whole tree when `value` is a root. */
void fib_json_free(struct fib_json **value);
struct fib_json *fib_json_clone(const struct fib_json *value);

/* Setters replace an existing member of that name in place (its position is kept). Text may be
 * NULL, which stores null. Invalid UTF-8 in text is replaced byte by byte by U+FFFD. */
void fib_json_set_text(struct fib_json *object, const char *name, const char *text);
void fib_json_set_f64(struct fib_json *object, const char *name, double number);
void fib_json_set_i64(struct fib_json *object, const char *name, int64_t number);
void fib_json_set_bool(struct fib_json *object, const char *name, bool flag);
void fib_json_set_null(struct fib_json *object, const char *name);
/* Takes ownership of `child`; returns it for chaining. */
struct fib_json *fib_json_set(struct fib_json *object, const char *name, struct fib_json *child);
struct fib_json *fib_json_add(struct fib_json *array, struct fib_json *child);
void fib_json_add_text(struct fib_json *array, const char *text);
void fib_json_add_f64(struct fib_json *array, double number);

/* Getters accept NULL and missing members. `path` may step into objects with dots ("time.median");
 * an empty path is the value itself.
 * A member whose own name contains a dot is not reachable; the program uses none. */
const struct fib_json *fib_json_get(const struct fib_json *object, const char *path);
bool fib_json_is_null(const struct fib_json *value); /* also true for a NULL handle */
bool fib_json_is_text(const struct fib_json *value);
bool fib_json_is_number(const struct fib_json *value);
bool fib_json_is_bool(const struct fib_json *value);
const char *fib_json_text(const struct fib_json *object, const char *path); /* NULL if not text */
double fib_json_f64(const struct fib_json *object, const char *path);       /* NaN if no number */
bool fib_json_bool(const struct fib_json *object, const char *path);        /* false if absent */
size_t fib_json_count(const struct fib_json *array_or_object);
const struct fib_json *fib_json_at(const struct fib_json *array_or_object, size_t index);
const char *fib_json_name_at(const struct fib_json *object, size_t index);

/* One line without blanks (for JSONL), or indented. Release with free(). Non-ASCII stays UTF-8. */
char *fib_json_print(const struct fib_json *value, bool indented);
/* Parses exactly one value; trailing blanks allowed, anything else is an error that names the
 * byte offset. Nesting deeper than 64 and text over `length` bytes never overrun. NULL on error. */
struct fib_json *fib_json_parse(const char *chars, size_t length, struct fib_error *err);

#endif
