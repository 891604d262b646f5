/* JSON values on top of cJSON, which holds the trees and parses; checking before the parse and
 * printing are done here, because cJSON is lenient about input and prints 1e15 as "1e+15". */
#include "core/json.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/text.h"

enum { MAX_DEPTH = 64, MAX_NUMBER_CHARS = 63 /* cJSON's buffer */ };

static cJSON *inner(const struct fib_json *value)
{
    return (cJSON *)(uintptr_t)value;
}

static struct fib_json *outer(cJSON *item)
{
    if (!item) {
        fputs("fib-bench: no memory left for a record\n", stderr);
        abort();
    }
    return (struct fib_json *)item;
}

/* ---- UTF-8 ---- */

/* Length of the valid UTF-8 character at `bytes`, 0 when there is none. */
static size_t utf8_length(const unsigned char *bytes, size_t left)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char lead = bytes[0];
    if (lead < 0x80)
        return 1;
    const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || length > left)
        return 0;
    unsigned code = lead & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (bytes[i] & 0x3fu);
    }
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < least[length] || code > 0x10ffff || surrogate ? 0 : length;
}

/* Adds `chars` with every byte that is not part of a valid character replaced by U+FFFD. */
static void add_valid_utf8(struct fib_text *out, const char *chars)
{
    const size_t length = strlen(chars);
    for (size_t i = 0; i < length;) {
        const size_t step = utf8_length((const unsigned char *)chars + i, length - i);
        if (step > 0)
            fib_text_add_n(out, chars + i, step);
        else
            fib_text_add(out, "\xef\xbf\xbd");
        i += step > 0 ? step : 1;
    }
}

static cJSON *new_text(const char *text)
{
    if (!text)
        return cJSON_CreateNull();
    struct fib_text valid = {0};
    add_valid_utf8(&valid, text);
    cJSON *item = cJSON_CreateString(fib_text_chars(&valid));
    fib_text_free(&valid);
    return item;
}

static cJSON *new_number(double number)
{
    return isfinite(number) ? cJSON_CreateNumber(number) : cJSON_CreateNull();
}

/* ---- building ---- */

struct fib_json *fib_json_object(void)
{
    return outer(cJSON_CreateObject());
}

struct fib_json *fib_json_array(void)
{
    return outer(cJSON_CreateArray());
}

void fib_json_free(struct fib_json **value)
{
    if (!value || !*value)
        return;
    cJSON_Delete(inner(*value));
    *value = NULL;
}

struct fib_json *fib_json_clone(const struct fib_json *value)
{
    return value ? outer(cJSON_Duplicate(inner(value), 1)) : NULL;
}

struct fib_json *fib_json_set(struct fib_json *object, const char *name, struct fib_json *child)
{
    struct fib_text valid = {0};
    add_valid_utf8(&valid, name);
    const char *key = fib_text_chars(&valid);
    if (!child)
        child = outer(cJSON_CreateNull());
    if (cJSON_GetObjectItemCaseSensitive(inner(object), key))
        cJSON_ReplaceItemInObjectCaseSensitive(inner(object), key, inner(child));
    else if (!cJSON_AddItemToObject(inner(object), key, inner(child)))
        outer(NULL);
    fib_text_free(&valid);
    return child;
}

void fib_json_set_text(struct fib_json *object, const char *name, const char *text)
{
    fib_json_set(object, name, outer(new_text(text)));
}

void fib_json_set_f64(struct fib_json *object, const char *name, double number)
{
    fib_json_set(object, name, outer(new_number(number)));
}

void fib_json_set_i64(struct fib_json *object, const char *name, int64_t number)
{
    fib_json_set_f64(object, name, (double)number);
}

void fib_json_set_bool(struct fib_json *object, const char *name, bool flag)
{
    fib_json_set(object, name, outer(cJSON_CreateBool(flag)));
}

void fib_json_set_null(struct fib_json *object, const char *name)
{
    fib_json_set(object, name, NULL);
}

struct fib_json *fib_json_add(struct fib_json *array, struct fib_json *child)
{
    if (!child)
        child = outer(cJSON_CreateNull());
    cJSON_AddItemToArray(inner(array), inner(child));
    return child;
}

void fib_json_add_text(struct fib_json *array, const char *text)
{
    fib_json_add(array, outer(new_text(text)));
}

void fib_json_add_f64(struct fib_json *array, double number)
{
    fib_json_add(array, outer(new_number(number)));
}

/* ---- reading ---- */

static const cJSON *member(const cJSON *object, const char *name, size_t length)
{
    if (!cJSON_IsObject(object))
        return NULL;
    for (const cJSON *child = object->child; child; child = child->next) {
        if (strncmp(child->string, name, length) == 0 && child->string[length] == '\0')
            return child;
    }
    return NULL;
}

const struct fib_json *fib_json_get(const struct fib_json *object, const char *path)
{
    const cJSON *item = inner(object);
    while (item && *path) {
        const size_t length = strcspn(path, ".");
        item = member(item, path, length);
        if (path[length] == '\0')
            break;
        path += length + 1;
    }
    return (const struct fib_json *)item;
}

bool fib_json_is_null(const struct fib_json *value)
{
    return !value || cJSON_IsNull(inner(value));
}

bool fib_json_is_text(const struct fib_json *value)
{
    return cJSON_IsString(inner(value));
}

bool fib_json_is_number(const struct fib_json *value)
{
    return cJSON_IsNumber(inner(value));
}

bool fib_json_is_bool(const struct fib_json *value)
{
    return cJSON_IsBool(inner(value));
}

const char *fib_json_text(const struct fib_json *object, const char *path)
{
    const struct fib_json *value = fib_json_get(object, path);
    return fib_json_is_text(value) ? inner(value)->valuestring : NULL;
}

double fib_json_f64(const struct fib_json *object, const char *path)
{
    const struct fib_json *value = fib_json_get(object, path);
    return fib_json_is_number(value) ? inner(value)->valuedouble : NAN;
}

bool fib_json_bool(const struct fib_json *object, const char *path)
{
    return cJSON_IsTrue(inner(fib_json_get(object, path)));
}

static bool is_group(const struct fib_json *value)
{
    return cJSON_IsObject(inner(value)) || cJSON_IsArray(inner(value));
}

size_t fib_json_count(const struct fib_json *array_or_object)
{
    return is_group(array_or_object) ? (size_t)cJSON_GetArraySize(inner(array_or_object)) : 0;
}

const struct fib_json *fib_json_at(const struct fib_json *array_or_object, size_t index)
{
    const cJSON *item = is_group(array_or_object) ? inner(array_or_object)->child : NULL;
    while (item && index > 0) {
        item = item->next;
        index--;
    }
    return (const struct fib_json *)item;
}

const char *fib_json_name_at(const struct fib_json *object, size_t index)
{
    const struct fib_json *value = fib_json_at(object, index);
    return value ? inner(value)->string : NULL;
}

/* ---- printing ---- */

static void print_text(struct fib_text *out, const char *chars)
{
    fib_text_add_char(out, '"');
    for (const char *c = chars; *c; c++) {
        static const char special[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
        const char *found = strchr(special, *c);
        if (found) {
            fib_text_add_char(out, '\\');
            fib_text_add_char(out, letter[found - special]);
        } else if ((unsigned char)*c < 0x20) {
            fib_text_addf(out, "\\u%04x", (unsigned)*c);
        } else {
            fib_text_add_char(out, *c);
        }
    }
    fib_text_add_char(out, '"');
}

static void print_number(struct fib_text *out, double number)
{
    const double exact_limit = 9007199254740992.0; /* 2^53 */
    const bool negative_zero = number == 0.0 && signbit(number);
    if (!isfinite(number))
        fib_text_add(out, "null");
    else if (number == floor(number) && fabs(number) <= exact_limit && !negative_zero)
        fib_text_addf(out, "%lld", (long long)number);
    else
        fib_text_add_f64(out, number);
}

/* indent < 0: on one line */
static void print_break(struct fib_text *out, int indent)
{
    if (indent < 0)
        return;
    fib_text_add_char(out, '\n');
    for (int i = 0; i < indent; i++)
        fib_text_add(out, "  ");
}

static void print_value(struct fib_text *out, const cJSON *item, int indent);

static void print_group(struct fib_text *out, const cJSON *group, int indent)
{
    const bool object = cJSON_IsObject(group);
    const int deeper = indent < 0 ? indent : indent + 1;
    fib_text_add_char(out, object ? '{' : '[');
    for (const cJSON *child = group->child; child; child = child->next) {
        print_break(out, deeper);
        if (object) {
            print_text(out, child->string);
            fib_text_add(out, indent < 0 ? ":" : ": ");
        }
        print_value(out, child, deeper);
        if (child->next)
            fib_text_add_char(out, ',');
    }
    if (group->child)
        print_break(out, indent);
    fib_text_add_char(out, object ? '}' : ']');
}

static void print_value(struct fib_text *out, const cJSON *item, int indent)
{
    if (cJSON_IsObject(item) || cJSON_IsArray(item))
        print_group(out, item, indent);
    else if (cJSON_IsString(item))
        print_text(out, item->valuestring);
    else if (cJSON_IsNumber(item))
        print_number(out, item->valuedouble);
    else if (cJSON_IsBool(item))
        fib_text_add(out, cJSON_IsTrue(item) ? "true" : "false");
    else
        fib_text_add(out, "null");
}

char *fib_json_print(const struct fib_json *value, bool indented)
{
    struct fib_text out = {0};
    print_value(&out, inner(value), indented ? 0 : -1);
    return out.chars;
}

/* ---- parsing ---- */

/* Where the scan stands; `problem` is set at the first thing strict JSON does not allow. */
struct scan {
    const char *chars;
    size_t length, at;
    int depth;
    const char *problem;
};

static bool scan_digits(struct scan *scan)
{
    const size_t start = scan->at;
    while (scan->at < scan->length && isdigit((unsigned char)scan->chars[scan->at]))
        scan->at++;
    return scan->at > start;
}

static bool scan_one_of(struct scan *scan, const char *set)
{
    if (scan->at >= scan->length || scan->chars[scan->at] == '\0' ||
        !strchr(set, scan->chars[scan->at]))
        return false;
    scan->at++;
    return true;
}

static void scan_number(struct scan *scan)
{
    const size_t start = scan->at;
    scan_one_of(scan, "-");
    const bool zero = scan_one_of(scan, "0");
    bool good = scan_digits(scan) != zero; /* no digit may follow a leading zero */
    if (scan_one_of(scan, "."))
        good = scan_digits(scan) && good;
    if (scan_one_of(scan, "eE")) {
        scan_one_of(scan, "+-");
        good = scan_digits(scan) && good;
    }
    if (!good)
        scan->problem = "a malformed number";
    else if (scan->at - start > MAX_NUMBER_CHARS)
        scan->problem = "a number of more than 63 characters";
}

/* One character of a string, escapes included. */
static void scan_character(struct scan *scan)
{
    const unsigned char *bytes = (const unsigned char *)scan->chars + scan->at;
    const size_t left = scan->length - scan->at;
    if (bytes[0] == '\\') {
        const bool zero = left >= 6 && memcmp(bytes, "\\u0000", 6) == 0;
        if (zero)
            scan->problem = "the character U+0000";
        else /* which escapes exist is the parser's business */
            scan->at += left >= 2 && bytes[1] < 0x80 ? 2 : 1;
        return;
    }
    const size_t step = bytes[0] < 0x20 ? 0 : utf8_length(bytes, left);
    if (step == 0)
        scan->problem = bytes[0] < 0x20 ? "a control character in a text" : "invalid UTF-8";
    scan->at += step;
}

static void scan_text(struct scan *scan)
{
    const size_t start = scan->at++;
    while (!scan->problem && scan->at < scan->length && scan->chars[scan->at] != '"')
        scan_character(scan);
    if (scan->problem)
        return;
    if (scan->at >= scan->length) {
        scan->at = start;
        scan->problem = "a text that does not end";
        return;
    }
    scan->at++;
}

/* What cJSON would accept or run into: deep nesting, lenient numbers, raw control characters. */
static void scan_token(struct scan *scan)
{
    const char c = scan->chars[scan->at];
    if (c == '"') {
        scan_text(scan);
    } else if (c == '-' || isdigit((unsigned char)c)) {
        scan_number(scan);
    } else if ((unsigned char)c < 0x20 && (c == '\0' || !strchr("\t\n\r", c))) {
        scan->problem = "a control character";
    } else {
        if (c == '[' || c == '{')
            scan->depth++;
        else if (c == ']' || c == '}')
            scan->depth--;
        if (scan->depth > MAX_DEPTH)
            scan->problem = "more than 64 levels of nesting";
        else
            scan->at++;
    }
}

static bool scan_all(const char *chars, size_t length, struct fib_error *err)
{
    struct scan scan = {.chars = chars, .length = length};
    while (!scan.problem && scan.at < length)
        scan_token(&scan);
    if (!scan.problem)
        return true;
    fib_fail(err, FIB_ERR_USAGE, "not valid JSON: %s at byte %zu", scan.problem, scan.at);
    return false;
}

/* 1e999 is legal JSON but no number here. */
static void drop_infinities(cJSON *item)
{
    for (; item; item = item->next) {
        if (cJSON_IsNumber(item) && !isfinite(item->valuedouble))
            item->type = (item->type & ~0xff) | cJSON_NULL;
        drop_infinities(item->child);
    }
}

static bool only_blanks(const char *chars, const char *end)
{
    while (chars < end && strchr(" \t\r\n", *chars))
        chars++;
    return chars >= end;
}

struct fib_json *fib_json_parse(const char *chars, size_t length, struct fib_error *err)
{
    if (!scan_all(chars, length, err))
        return NULL;
    const char *end = chars;
    cJSON *item = cJSON_ParseWithLengthOpts(chars, length, &end, 0);
    if (!item) {
        fib_fail(err, FIB_ERR_USAGE, "not valid JSON: %s at byte %zu",
                 only_blanks(end, chars + length) ? "unexpected end" : "unexpected text",
                 (size_t)(end - chars));
        return NULL;
    }
    if (!only_blanks(end, chars + length)) {
        fib_fail(err, FIB_ERR_USAGE, "not valid JSON: text after the value at byte %zu",
                 (size_t)(end - chars));
        cJSON_Delete(item);
        return NULL;
    }
    drop_infinities(item);
    return outer(item);
}
