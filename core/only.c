/* The expression of --only: tokens, a small tree, and its value for a case. */
#include "core/only.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "core/memory.h"
#include "core/routine.h"
#include "core/suggest.h"
#include "core/text.h"

/* Parentheses and `not` nest on the C stack, so they are limited. */
enum { MAX_DEPTH = 64 };

enum token { T_END, T_OPEN, T_CLOSE, T_AND, T_OR, T_NOT, T_OPERATOR, T_WORD, T_QUOTED, T_BAD };

enum operator{ OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE, OP_HAS };

enum node_kind { NODE_ANY, NODE_ALL, NODE_NOT, NODE_COMPARE, NODE_NAME };

struct operand {
    bool is_number, is_quoted;
    double number;
    const char *text; /* as written; '-' made '_' in a flag's name */
    const char *name;
};

/* Children of ANY, ALL and NOT form a list: a long chain of `or` must not nest. */
struct fib_only {
    enum node_kind kind;
    struct fib_only *first_child, *next;
    enum operator op;
    struct operand left, right;
};

struct parser {
    const char *text, *at; /* `at` is behind the current token */
    const char *token_start;
    enum token token;
    enum operator op;
    const char *word;
    const struct fib_registry *registry;
    struct fib_arena *arena;
    struct fib_error *err;
    int depth;
};

/* ---- tokens ---- */

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_-.+:/", c)) || (unsigned char)c >= 0x80;
}

static enum fib_status fail_at(struct parser *parser, const char *what)
{
    return fib_fail(parser->err, FIB_ERR_USAGE, "--only: %s at column %zu", what,
                    (size_t)(parser->token_start - parser->text) + 1);
}

static enum token read_operator(struct parser *parser)
{
    static const struct {
        const char *spelling;
        enum operator op;
    } rows[] = {{"==", OP_EQ},  {"!=", OP_NE}, {"<=", OP_LE}, {">=", OP_GE},
                {"=~", OP_HAS}, {"<", OP_LT},  {">", OP_GT}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t length = strlen(rows[i].spelling);
        if (strncmp(parser->at, rows[i].spelling, length) != 0)
            continue;
        parser->at += length;
        parser->op = rows[i].op;
        return T_OPERATOR;
    }
    return T_BAD;
}

static enum token read_quoted(struct parser *parser)
{
    const char *end = strchr(parser->at + 1, *parser->at);
    if (!end)
        return T_BAD;
    parser->word = fib_arena_strndup(parser->arena, parser->at + 1, (size_t)(end - parser->at) - 1);
    parser->at = end + 1;
    return T_QUOTED;
}

static enum token read_word(struct parser *parser)
{
    const char *start = parser->at;
    while (is_word_char(*parser->at))
        parser->at++;
    parser->word = fib_arena_strndup(parser->arena, start, (size_t)(parser->at - start));
    if (strcmp(parser->word, "and") == 0)
        return T_AND;
    if (strcmp(parser->word, "or") == 0)
        return T_OR;
    return strcmp(parser->word, "not") == 0 ? T_NOT : T_WORD;
}

static void advance(struct parser *parser)
{
    while (isspace((unsigned char)*parser->at))
        parser->at++;
    const char c = *parser->at;
    parser->token_start = parser->at;
    if (c == '\0')
        parser->token = T_END;
    else if (c == '(' || c == ')') {
        parser->token = c == '(' ? T_OPEN : T_CLOSE;
        parser->at++;
    } else if (c == '"' || c == '\'')
        parser->token = read_quoted(parser);
    else if (is_word_char(c))
        parser->token = read_word(parser);
    else
        parser->token = read_operator(parser);
}

/* ---- names ---- */

static const struct fib_option *find_row(const struct fib_option *rows, const char *name)
{
    for (; rows && rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

static bool is_number_kind(enum fib_option_kind kind)
{
    return kind == FIB_OPT_I64 || kind == FIB_OPT_F64 || kind == FIB_OPT_COUNT;
}

/* Known to some routine? *ordered: as a number in at least one of them. */
static bool name_known(const struct fib_registry *registry, const char *name, bool *ordered)
{
    *ordered = false;
    if (strcmp(name, "routine") == 0)
        return true;
    const struct fib_option *row = find_row(fib_shared_options, name);
    bool known = row != NULL;
    *ordered = row && is_number_kind(row->kind);
    const struct fib_routine *routine;
    for (size_t n = 0; (routine = fib_registry_routine_at(registry, n)); n++) {
        row = find_row(routine->options, name);
        known = known || row;
        *ordered = *ordered || (row && is_number_kind(row->kind));
    }
    return known;
}

static void suggest_rows(struct fib_suggest *suggest, const struct fib_option *rows)
{
    for (; rows && rows->name; rows++)
        fib_suggest_try(suggest, rows->name);
}

static enum fib_status fail_name(struct parser *parser, const char *name)
{
    struct fib_suggest suggest = fib_suggest_start(name);
    suggest_rows(&suggest, fib_shared_options);
    const struct fib_routine *routine;
    for (size_t n = 0; (routine = fib_registry_routine_at(parser->registry, n)); n++)
        suggest_rows(&suggest, routine->options);
    return fib_fail(parser->err, FIB_ERR_USAGE, "--only: no routine has a flag %s%s",
                    fib_shown(name, parser->arena),
                    fib_suggest_clause(&suggest, "", parser->arena));
}

static enum fib_status check_compare(struct parser *parser, const struct fib_only *node)
{
    const struct operand *left = &node->left;
    bool ordered = false;
    if (!left->name && !node->right.name)
        return fail_at(parser, "a comparison needs a flag on one side; it ends");
    if (!left->name)
        return name_known(parser->registry, node->right.name, &ordered)
                   ? FIB_OK
                   : fail_name(parser, node->right.name);
    if (!name_known(parser->registry, left->name, &ordered))
        return fail_name(parser, left->name);
    const bool orders = node->op != OP_EQ && node->op != OP_NE && node->op != OP_HAS;
    if (orders && !ordered)
        return fib_fail(parser->err, FIB_ERR_USAGE,
                        "--only: %s is not a number; compare it with ==, != or =~", left->name);
    return FIB_OK;
}

/* ---- tree ---- */

static enum fib_status parse_any(struct parser *parser, struct fib_only **node);

static struct fib_only *new_node(struct parser *parser, enum node_kind kind)
{
    struct fib_only *node = fib_arena_alloc(parser->arena, sizeof(*node));
    node->kind = kind;
    return node;
}

static enum fib_status parse_operand(struct parser *parser, struct operand *operand)
{
    if (parser->token != T_WORD && parser->token != T_QUOTED)
        return fail_at(parser, "a flag, number or text is expected");
    *operand = (struct operand){.text = parser->word, .is_quoted = parser->token == T_QUOTED};
    const char first = parser->word[0];
    if (!operand->is_quoted) {
        operand->is_number = (isdigit((unsigned char)first) || (first && strchr("-+.", first))) &&
                             fib_parse_f64(parser->word, &operand->number);
        if (!operand->is_number) {
            char *name = fib_arena_strdup(parser->arena, parser->word);
            for (char *c = name; *c; c++)
                *c = *c == '-' ? '_' : *c;
            operand->name = name;
        }
    }
    advance(parser);
    return FIB_OK;
}

static enum fib_status parse_compare(struct parser *parser, struct fib_only **node)
{
    *node = new_node(parser, NODE_NAME);
    enum fib_status st = parse_operand(parser, &(*node)->left);
    if (st != FIB_OK)
        return st;
    if (parser->token != T_OPERATOR) {
        bool ordered = false;
        if (parser->token == T_BAD || !(*node)->left.name)
            return fail_at(parser, "one of == != < <= > >= =~ is expected");
        return name_known(parser->registry, (*node)->left.name, &ordered)
                   ? FIB_OK
                   : fail_name(parser, (*node)->left.name);
    }
    (*node)->kind = NODE_COMPARE;
    (*node)->op = parser->op;
    advance(parser);
    st = parse_operand(parser, &(*node)->right);
    return st == FIB_OK ? check_compare(parser, *node) : st;
}

static enum fib_status parse_not(struct parser *parser, struct fib_only **node)
{
    if (parser->token != T_NOT && parser->token != T_OPEN)
        return parse_compare(parser, node);
    if (++parser->depth > MAX_DEPTH)
        return fail_at(parser, "nested too deeply");
    const bool open = parser->token == T_OPEN;
    advance(parser);
    enum fib_status st;
    if (open) {
        st = parse_any(parser, node);
        if (st == FIB_OK && parser->token != T_CLOSE)
            return fail_at(parser, "a ) is missing");
        if (st == FIB_OK)
            advance(parser);
    } else {
        *node = new_node(parser, NODE_NOT);
        st = parse_not(parser, &(*node)->first_child);
    }
    parser->depth--;
    return st;
}

/* Terms joined by one connective. */
static enum fib_status parse_chain(struct parser *parser, enum node_kind kind,
                                   struct fib_only **node)
{
    *node = new_node(parser, kind);
    struct fib_only **slot = &(*node)->first_child;
    for (;;) {
        const enum fib_status st =
            kind == NODE_ANY ? parse_chain(parser, NODE_ALL, slot) : parse_not(parser, slot);
        if (st != FIB_OK)
            return st;
        if (parser->token != (kind == NODE_ANY ? T_OR : T_AND))
            return FIB_OK;
        slot = &(*slot)->next;
        advance(parser);
    }
}

static enum fib_status parse_any(struct parser *parser, struct fib_only **node)
{
    return parse_chain(parser, NODE_ANY, node);
}

enum fib_status fib_only_parse(const char *text, const struct fib_registry *registry,
                               struct fib_arena *arena, const struct fib_only **only,
                               struct fib_error *err)
{
    struct parser parser = {
        .text = text, .at = text, .registry = registry, .arena = arena, .err = err};
    struct fib_only *root = NULL;
    advance(&parser);
    if (parser.token == T_END)
        return fib_fail(err, FIB_ERR_USAGE, "--only needs an expression, e.g. \"batch_size >= 8\"");
    const enum fib_status st = parse_any(&parser, &root);
    if (st != FIB_OK)
        return st;
    if (parser.token != T_END)
        return fail_at(&parser, "`and`, `or` or the end is expected");
    *only = root;
    return FIB_OK;
}

/* ---- value ---- */

struct found {
    bool present, is_number;
    double number;
    const char *text;
};

static struct found resolve(const struct operand *operand, const struct fib_case *kase,
                            bool may_be_text)
{
    if (operand->is_number)
        return (struct found){
            .present = true, .is_number = true, .number = operand->number, .text = operand->text};
    if (!operand->name)
        return (struct found){.present = true, .text = operand->text};
    if (strcmp(operand->name, "routine") == 0)
        return (struct found){.present = true, .text = kase->routine->name};
    const int row = fib_option_index(kase->options, operand->name);
    if (row < 0)
        return (struct found){.present = may_be_text, .text = operand->text};
    const struct fib_value *value = &kase->values[row];
    const enum fib_option_kind kind = kase->options->rows[row].kind;
    return (struct found){.present = value->set,
                          .is_number = is_number_kind(kind),
                          .number = kind == FIB_OPT_F64 ? value->f64 : (double)value->i64,
                          .text = value->text};
}

static bool compare_numbers(enum operator op, double a, double b)
{
    switch (op) {
    case OP_EQ:
        return a == b;
    case OP_NE:
        return a != b;
    case OP_LT:
        return a < b;
    case OP_LE:
        return a <= b;
    case OP_GT:
        return a > b;
    case OP_GE:
        return a >= b;
    case OP_HAS:
        break;
    }
    return false;
}

static bool compare_texts(enum operator op, const char *a, const char *b)
{
    if (op == OP_HAS)
        return strcasestr(a, b) != NULL;
    const bool same = strcasecmp(a, b) == 0;
    return op == OP_EQ ? same : op == OP_NE && !same;
}

/* A text that spells a number compares as one with a number: eps == "1e-6". */
static bool as_number(const struct found *found, double *number)
{
    *number = found->number;
    return found->is_number || fib_parse_f64(found->text, number);
}

static bool compare(const struct fib_only *node, const struct fib_case *kase)
{
    const struct found left = resolve(&node->left, kase, false);
    const struct found right = resolve(&node->right, kase, node->left.name != NULL);
    double a = 0, b = 0;
    if (!left.present || !right.present)
        return false;
    if (node->op != OP_HAS && (left.is_number || right.is_number) && as_number(&left, &a) &&
        as_number(&right, &b))
        return compare_numbers(node->op, a, b);
    return compare_texts(node->op, left.text, right.text);
}

static bool name_holds(const struct operand *operand, const struct fib_case *kase)
{
    const struct found found = resolve(operand, kase, false);
    return found.present && strcasecmp(found.text, "false") != 0;
}

bool fib_only_holds(const struct fib_only *only, const struct fib_case *kase)
{
    switch (only->kind) {
    case NODE_ANY:
        for (const struct fib_only *child = only->first_child; child; child = child->next)
            if (fib_only_holds(child, kase))
                return true;
        return false;
    case NODE_ALL:
        for (const struct fib_only *child = only->first_child; child; child = child->next)
            if (!fib_only_holds(child, kase))
                return false;
        return true;
    case NODE_NOT:
        return !fib_only_holds(only->first_child, kase);
    case NODE_COMPARE:
        return compare(only, kase);
    case NODE_NAME:
        return name_holds(&only->left, kase);
    }
    return false;
}
