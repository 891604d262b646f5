/* Verbs of the command line. Everything that only reads tables opens no device. */
#include "core/app.h"

#include <stdlib.h>
#include <string.h>

#include "core/assign.h"
#include "core/env.h"
#include "core/help.h"
#include "core/memory.h"
#include "core/plan.h"
#include "core/plugin.h"
#include "core/pool.h"
#include "core/run.h"
#include "core/text.h"

struct verb {
    const char *name;
    int (*run)(const struct fib_app *app, size_t word_count, const char *const *words);
};

static int complain(const struct fib_app *app, const char *sentence, enum fib_exit exit_status)
{
    fprintf(app->err, "%s: %s\n", app->registry->program, sentence);
    return (int)exit_status;
}

/* Prints and checks that the text arrived: a full disk is an error also for help. */
static int print(const struct fib_app *app, struct fib_text *text)
{
    fputs(fib_text_chars(text), app->out);
    fib_text_free(text);
    if (fflush(app->out) != 0 || ferror(app->out))
        return complain(app, "cannot write to standard output", FIB_EXIT_ENVIRONMENT);
    return FIB_EXIT_OK;
}

static int unexpected(const struct fib_app *app, const char *verb, const char *word,
                      const char *allowed)
{
    struct fib_error err = {0};
    fib_fail(&err, FIB_ERR_USAGE, "unexpected '%s' after %s; allowed: %s", word, verb, allowed);
    return complain(app, err.text, FIB_EXIT_USAGE);
}

static bool is_flag(const char *word, const char *long_name, const char *short_name)
{
    return strcmp(word, long_name) == 0 || (short_name && strcmp(word, short_name) == 0);
}

static int run_list(const struct fib_app *app, size_t word_count, const char *const *words)
{
    static const char allowed[] = "--family NAME, --markdown, --models, --flags";
    const char *family = NULL;
    bool markdown = false, models = false, flags = false;
    for (size_t i = 0; i < word_count; i++) {
        if (is_flag(words[i], "--family", NULL) && i + 1 < word_count)
            family = words[++i];
        else if (is_flag(words[i], "--markdown", NULL))
            markdown = true;
        else if (is_flag(words[i], "--models", NULL))
            models = true;
        else if (is_flag(words[i], "--flags", NULL))
            flags = true;
        else
            return unexpected(app, "list", words[i], allowed);
    }
    struct fib_error err = {0};
    struct fib_text text = {0};
    if (models)
        fib_help_models(app->registry, &text);
    else if (flags)
        fib_help_options_page(app->registry, &text);
    else if (fib_help_list(app->registry, family, markdown, &text, &err) != FIB_OK)
        return complain(app, err.text, FIB_EXIT_USAGE);
    return print(app, &text);
}

static int run_describe(const struct fib_app *app, size_t word_count, const char *const *words)
{
    struct fib_error err = {0};
    struct fib_text text = {0};
    if (word_count != 1)
        return complain(app, "describe takes one routine name; `list` shows them", FIB_EXIT_USAGE);
    const struct fib_routine *const routine =
        fib_registry_need_routine(app->registry, words[0], &err);
    if (!routine)
        return complain(app, err.text, FIB_EXIT_USAGE);
    fib_help_describe(app->registry, routine, &text);
    return print(app, &text);
}

/* Opens the device, lets `write` add to the text, prints. */
static int with_device(const struct fib_app *app, struct fib_text *text,
                       void (*write)(const struct fib_app *app, struct fib_device *device,
                                     struct fib_text *text))
{
    struct fib_error err = {0};
    struct fib_device *device = NULL;
    struct fib_pool *pool = fib_pool_create(0);
    const enum fib_status st = app->open_device(app, pool, &device, &err);
    if (st == FIB_OK)
        write(app, device, text);
    fib_device_close(&device);
    fib_pool_free(&pool);
    return st == FIB_OK ? print(app, text) : complain(app, err.text, FIB_EXIT_ENVIRONMENT);
}

static void write_env(const struct fib_app *app, struct fib_device *device, struct fib_text *text)
{
    struct fib_json *block = fib_env_block(app->registry, device, 0, NULL);
    fib_env_print(block, text);
    fib_json_free(&block);
}

static void write_env_json(const struct fib_app *app, struct fib_device *device,
                           struct fib_text *text)
{
    struct fib_json *block = fib_env_block(app->registry, device, 0, NULL);
    char *const chars = fib_json_print(block, true);
    fib_text_add(text, chars);
    fib_text_add(text, "\n");
    free(chars);
    fib_json_free(&block);
}

static int run_env(const struct fib_app *app, size_t word_count, const char *const *words)
{
    struct fib_text text = {0};
    if (word_count == 0)
        return with_device(app, &text, write_env);
    if (word_count == 1 && is_flag(words[0], "--json", NULL))
        return with_device(app, &text, write_env_json);
    return unexpected(app, "env", words[0], "--json");
}

static void write_doctor(const struct fib_app *app, struct fib_device *device,
                         struct fib_text *text)
{
    const struct fib_device_facts *const facts = &device->facts;
    fib_text_addf(text, "  device      %s, %d %s, ", facts->name, facts->unit_count,
                  facts->kind == FIB_DEVICE_CUDA ? "SMs" : "threads");
    fib_text_add_bytes(text, (double)facts->memory_bytes);
    fib_text_add(text, ", last-level cache ");
    fib_text_add_bytes(text, (double)facts->cache_bytes);
    fib_text_addf(text, ", clock step %.0f ns  ok\n", facts->tick_ms * 1e6);
    if (facts->kind == FIB_DEVICE_CPU)
        fib_text_addf(text, "  cuda        %s  missing\n",
                      facts->note[0] ? facts->note : "this program measures on the CPU only");
    else
        fib_text_addf(text, "  cuda        %s  ok\n", facts->note);
    for (size_t i = 0; i < app->registry->backend_count; i++) {
        const struct fib_backend *const backend = app->registry->backends[i];
        fib_text_addf(text, "  %s", backend->id);
        fib_text_pad(text, 18);
        fib_text_add(text, " ");
        bool usable = !backend->absent;
        if (backend->absent)
            fib_text_add(text, backend->absent);
        else if (backend->origin)
            fib_text_addf(text, "plug-in %s", backend->origin);
        else if (backend->probe)
            usable = backend->probe(text);
        else
            fib_text_add(text, "built in");
        fib_text_add(text, usable ? "  ok\n" : "  missing\n");
    }
}

static int run_doctor(const struct fib_app *app, size_t word_count, const char *const *words)
{
    struct fib_text text = {0};
    if (word_count > 0)
        return unexpected(app, "doctor", words[0], "nothing");
    return with_device(app, &text, write_doctor);
}

static const struct verb verbs[] = {
    {"list", run_list},
    {"describe", run_describe},
    {"env", run_env},
    {"doctor", run_doctor},
};

/* A first word without a dash is a verb. */
static int run_verb(const struct fib_app *app, size_t word_count, const char *const *words)
{
    const char *nearest = verbs[0].name;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(words[0], verbs[i].name) == 0)
            return verbs[i].run(app, word_count - 1, words + 1);
        if (fib_edit_distance(words[0], verbs[i].name) < fib_edit_distance(words[0], nearest))
            nearest = verbs[i].name;
    }
    struct fib_error err = {0};
    fib_fail(&err, FIB_ERR_USAGE,
             "unknown verb '%s'; there are list, describe, env, doctor (nearest: %s), and runs "
             "start with --routine or --testlist",
             words[0], nearest);
    return complain(app, err.text, FIB_EXIT_USAGE);
}

/* The routine named beside --help, or NULL. */
static const char *routine_word(size_t word_count, const char *const *words)
{
    for (size_t i = 0; i < word_count; i++) {
        if (strncmp(words[i], "--routine=", 10) == 0)
            return words[i] + 10;
        if (is_flag(words[i], "--routine", "-R") && i + 1 < word_count)
            return words[i + 1];
    }
    return NULL;
}

static int run_help(const struct fib_app *app, size_t word_count, const char *const *words)
{
    struct fib_error err = {0};
    struct fib_text text = {0};
    const char *const name = routine_word(word_count, words);
    if (!name) {
        fib_help_global(app->registry, &text);
        return print(app, &text);
    }
    const struct fib_routine *const routine = fib_registry_need_routine(app->registry, name, &err);
    if (!routine)
        return complain(app, err.text, FIB_EXIT_USAGE);
    fib_help_routine(app->registry, routine, &text);
    return print(app, &text);
}

static int run_version(const struct fib_app *app)
{
    struct fib_text text = {0};
    fib_text_addf(&text, "%s %s (%s)\n", app->registry->program, app->registry->version,
                  app->registry->build_id);
    return print(app, &text);
}

static bool any_word(size_t word_count, const char *const *words, const char *long_name,
                     const char *short_name)
{
    for (size_t i = 0; i < word_count; i++)
        if (is_flag(words[i], long_name, short_name))
            return true;
    return false;
}

/* The command line with its --plugin flags taken apart. */
struct line {
    int argc; /* as given, for the environment block */
    const char *const *argv;
    const char **words; /* of the plan: each --plugin path once, at the end */
    size_t word_count;
    size_t rest_count; /* of the words, before those */
    const char **paths;
    size_t path_count;
    struct fib_arena *arena;
};

/* False when a --plugin has no path. */
static bool take_apart(struct line *line, int argc, const char *const *argv)
{
    const size_t count = argc > 0 ? (size_t)argc - 1 : 0;
    *line = (struct line){.argc = argc, .argv = argv, .arena = fib_arena_create()};
    const struct fib_option_set options = fib_registry_options(NULL, line->arena);
    line->words = fib_arena_array(line->arena, 2 * count + 2, sizeof(line->words[0]));
    line->paths = fib_arena_array(line->arena, count + 1, sizeof(line->paths[0]));
    bool complete = true;
    if (count > 0)
        complete =
            fib_assign_extract(&options, "plugin", count, argv + 1, line->words, &line->rest_count,
                               line->paths, &line->path_count, line->arena);
    line->word_count = line->rest_count;
    if (line->path_count > 0)
        line->words[line->word_count++] = "--plugin";
    for (size_t i = 0; i < line->path_count; i++)
        line->words[line->word_count++] = line->paths[i];
    return complete;
}

static int run_cases(const struct fib_app *app, const struct line *line)
{
    struct fib_error err = {0};
    struct fib_plan *plan = NULL;
    const enum fib_status st =
        fib_plan_parse(app->registry, line->word_count, line->words, &plan, &err);
    if (st != FIB_OK)
        return complain(app, err.text, FIB_EXIT_USAGE);
    const enum fib_exit exit_status = fib_run_plan(app, plan, line->argc, line->argv);
    fib_plan_free(&plan);
    return (int)exit_status;
}

static int run_line(const struct fib_app *app, const struct line *line)
{
    const size_t word_count = line->rest_count;
    const char *const *const words = line->words;
    if (word_count == 0) {
        struct fib_text text = {0};
        fib_help_global(app->registry, &text);
        print(app, &text);
        return FIB_EXIT_USAGE;
    }
    if (any_word(word_count, words, "--help", "-h"))
        return run_help(app, word_count, words);
    if (any_word(word_count, words, "--version", NULL))
        return run_version(app);
    if (words[0][0] != '-')
        return run_verb(app, word_count, words);
    return run_cases(app, line);
}

/* With the tables of the plug-ins. One that cannot be used costs its own rows and the exit status,
 * not the run. */
static int run_with_plugins(const struct fib_app *app, const struct line *line)
{
    struct fib_app extended = *app;
    struct fib_plugins *plugins = fib_plugins_open(app->registry, line->paths, line->path_count);
    const size_t failure_count = fib_plugins_failure_count(plugins);
    extended.registry = fib_plugins_registry(plugins);
    for (size_t i = 0; i < failure_count; i++)
        complain(app, fib_plugins_failure(plugins, i), FIB_EXIT_ENVIRONMENT);
    const enum fib_exit exit_status = (enum fib_exit)run_line(&extended, line);
    fib_plugins_free(&plugins);
    return (int)fib_exit_worse(exit_status, failure_count > 0 ? FIB_EXIT_ENVIRONMENT : FIB_EXIT_OK);
}

int fib_app_main(const struct fib_app *app, int argc, const char *const *argv)
{
    struct line line;
    int exit_status = FIB_EXIT_USAGE;
    if (!take_apart(&line, argc, argv))
        complain(app, "--plugin needs a value: the path of a shared library", FIB_EXIT_USAGE);
    else if (line.path_count > 0)
        exit_status = run_with_plugins(app, &line);
    else
        exit_status = run_line(app, &line);
    fib_arena_free(&line.arena);
    return exit_status;
}
