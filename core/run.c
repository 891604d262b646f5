/* Executes a plan: worker or this process, sinks, loop, summary, exit status. */
#include "core/run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/env.h"
#include "core/interrupt.h"
#include "core/memory.h"
#include "core/outfile.h"
#include "core/pool.h"
#include "core/progress.h"
#include "core/report.h"
#include "core/result.h"
#include "core/resume.h"
#include "core/runner.h"
#include "core/supervisor.h"
#include "core/text.h"
#include "core/worker.h"

struct run {
    struct fib_app app; /* with the device number of this run */
    const struct fib_plan *plan;
    int argc;
    const char *const *argv;
    struct fib_interrupt *interrupt;
    struct fib_supervisor *supervisor; /* NULL: cases run in this process */
    struct fib_pool *pool;             /* of this process; NULL with a supervisor */
    struct fib_device *device;         /* of this process, or the worker's from afar */
    struct fib_json *environment;
    struct fib_resume *resume; /* NULL without --resume */
    struct fib_report *report;
    struct fib_progress *progress;
    struct fib_sink_settings sinks;
    const char **flag_columns; /* NULL-terminated */
    enum fib_exit exit;
    bool measured;
    bool stopped; /* a sink or the last device failed: going on would lose results */
};

static void complain(const struct run *run, const char *sentence)
{
    fib_progress_clear(run->progress);
    fprintf(run->app.err, "%s: %s\n", run->app.registry->program, sentence);
}

static bool interrupted(void *context)
{
    const struct run *const run = context;
    return fib_interrupt_seen(run->interrupt);
}

static void say(void *context, const char *line)
{
    const struct run *const run = context;
    fib_progress_clear(run->progress);
    fprintf(run->app.out, "%s\n", line);
    fflush(run->app.out);
}

/* What a record means for the end of the run, whichever run made it. */
static void weigh(struct run *run, const struct fib_json *record)
{
    run->exit = fib_exit_worse(run->exit, fib_result_exit(record));
    run->measured = run->measured || fib_result_measured(record);
}

static enum fib_status emit(void *context, struct fib_json *record, struct fib_error *err)
{
    struct run *const run = context;
    weigh(run, record);
    fib_progress_clear(run->progress);
    return fib_report_row(run->report, record, err);
}

static enum fib_status end_group(void *context, struct fib_error *err)
{
    const struct run *const run = context;
    return fib_report_end_case(run->report, err);
}

/* With --resume: what the journal has is not run again. */
static void begin_group(void *context, const struct fib_group *group, bool *skip)
{
    struct run *const run = context;
    for (size_t i = 0; run->resume && i < group->count; i++) {
        const struct fib_json *const record =
            fib_resume_take(run->resume, group->key, group->labels[i], run->device->facts.uuid,
                            run->app.registry->build_id);
        skip[i] = record != NULL;
        if (record)
            weigh(run, record);
    }
}

static enum fib_status run_bad_line(struct run *run, const struct fib_plan_item *item, size_t index,
                                    struct fib_error *err)
{
    const struct fib_json *const earlier =
        run->resume ? fib_resume_take_line(run->resume, item->line, item->line_text) : NULL;
    fib_progress_clear(run->progress);
    fprintf(run->app.err, "%s\n", item->error);
    if (earlier) {
        weigh(run, earlier);
        return FIB_OK;
    }
    struct fib_json *const record =
        fib_result_bad_line_record(item->routine_name, run->plan->settings.testlist, item->line,
                                   item->line_text, item->error, (int64_t)index, run->device);
    return emit(run, record, err);
}

static enum fib_status run_case(struct run *run, const struct fib_case *kase, size_t index,
                                struct fib_error *err)
{
    const struct fib_runner runner = {.registry = run->app.registry,
                                      .device = run->device,
                                      .emit = emit,
                                      .end_group = end_group,
                                      .begin_group = begin_group,
                                      .say = say,
                                      .interrupted = interrupted,
                                      .context = run};
    struct fib_text title = {0};
    fib_case_title(kase, &title);
    fib_progress_update(run->progress, index, fib_text_chars(&title), kase->settings.backends);
    fib_text_free(&title);
    if (run->supervisor)
        return fib_supervisor_case(run->supervisor, &runner, index, err);
    const enum fib_status st = fib_runner_case(&runner, kase, (int64_t)index, err);
    if (st == FIB_OK && run->device->lost)
        return fib_fail(err, FIB_ERR_DEVICE,
                        "the device is lost to this process; without --no_isolation the next cases "
                        "would get a new one");
    return st;
}

static void run_item(struct run *run, size_t index)
{
    const struct fib_plan_item *const item = &run->plan->items[index];
    struct fib_error err = {0};
    if (item->kase)
        run_case(run, item->kase, index, &err);
    else
        run_bad_line(run, item, index, &err);
    if (err.status != FIB_OK) {
        complain(run, err.text);
        run->exit = fib_exit_worse(run->exit, FIB_EXIT_ENVIRONMENT);
        run->stopped = true;
    }
}

static void summarise(const struct run *run, double elapsed_s)
{
    const size_t count = fib_report_count(run->report);
    const struct fib_json **const records = fib_zalloc_array(count + 1, sizeof(records[0]));
    struct fib_text text = {0};
    for (size_t i = 0; i < count; i++)
        records[i] = fib_report_record(run->report, i);
    fib_run_summary(records, count, elapsed_s, &run->sinks, &text);
    fprintf(run->app.out, "%s", fib_text_chars(&text));
    if (run->exit != FIB_EXIT_OK)
        fprintf(run->app.out, "exit status %d\n", (int)run->exit);
    fib_text_free(&text);
    free(records);
}

static void warn_all(const struct run *run)
{
    for (size_t i = 0; i < run->plan->warning_count; i++)
        fprintf(run->app.out, "[WARNING] %s\n", run->plan->warnings[i]);
}

/* Routine names of all items, for the price per routine in the estimate of the time left. */
static const char **routine_names(const struct fib_plan *plan)
{
    const char **const names = fib_zalloc_array(plan->count, sizeof(names[0]));
    for (size_t i = 0; i < plan->count; i++)
        names[i] = plan->items[i].routine_name;
    return names;
}

/* ---- resuming ---- */

static void say_resumed(const struct run *run)
{
    struct fib_text line = {0};
    if (!run->resume || fib_resume_count(run->resume) == 0)
        return;
    fib_text_addf(&line, "[INFO] --resume: the journal has %zu rows, %zu of them finished",
                  fib_resume_count(run->resume), fib_resume_finished(run->resume));
    if (fib_resume_strange(run->resume) > 0)
        fib_text_addf(&line, "; %zu of its lines are no records and were passed over",
                      fib_resume_strange(run->resume));
    fprintf(run->app.out, "%s\n", fib_text_chars(&line));
    fib_text_free(&line);
}

static void say_untaken(const struct run *run)
{
    const size_t count = run->resume ? fib_resume_untaken(run->resume) : 0;
    if (count > 0 && !fib_interrupt_seen(run->interrupt) && !run->stopped)
        fprintf(run->app.out,
                "[WARNING] --resume: %zu finished row%s of the journal came from other cases, "
                "another device or another build\n",
                count, count == 1 ? "" : "s");
}

static void complain_interrupted(const struct run *run)
{
    struct fib_text line = {0};
    const struct fib_settings *const settings = &run->plan->settings;
    const char *const instead = settings->force    ? " instead of --force"
                                : settings->append ? " instead of --append"
                                                   : "";
    const bool journal = settings->output_path && !fib_outfile_is_special(settings->output_path);
    fib_text_add(&line, "interrupted; the rows above are complete");
    if (settings->output_path)
        fib_text_add(&line, " and written");
    if (journal && settings->resume)
        fib_text_add(&line, "; the same command goes on from here");
    else if (journal)
        fib_text_addf(&line, "; the same command with --resume%s goes on from here", instead);
    complain(run, fib_text_chars(&line));
    fib_text_free(&line);
}

/* ---- the loop ---- */

static void execute(struct run *run)
{
    const double start_ms = run->device->ops->now_ms(run->device);
    const size_t count = run->plan->count;
    run->progress = fib_progress_create(run->app.err, isatty(fileno(run->app.err)),
                                        run->plan->settings.quiet || count < 2, count, start_ms);
    const char **const names = routine_names(run->plan);
    fib_progress_plan(run->progress, names);
    for (size_t i = 0; i < count && !run->stopped && !interrupted(run); i++) {
        fib_progress_tick(run->progress, run->device->ops->now_ms(run->device));
        run_item(run, i);
    }
    fib_progress_finish(&run->progress);
    free(names);
    say_untaken(run);
    if (interrupted(run))
        run->exit = FIB_EXIT_INTERRUPTED;
    else if (!run->measured)
        run->exit = fib_exit_worse(run->exit, FIB_EXIT_NOTHING);
    const double elapsed_s = (run->device->ops->now_ms(run->device) - start_ms) / 1e3;
    if (count > 1 || run->plan->settings.testlist || interrupted(run))
        summarise(run, elapsed_s);
    if (interrupted(run))
        complain_interrupted(run);
}

static void print_plan_case(const struct run *run, const struct fib_case *kase,
                            const struct fib_estimate *estimate, struct fib_text *text)
{
    fib_text_clear(text);
    fib_case_title(kase, text);
    fib_text_pad(text, 72);
    if (estimate->unknown) {
        fprintf(run->app.out, "  %s %d run%s  size and time known when it runs\n",
                fib_text_chars(text), estimate->backend_count,
                estimate->backend_count == 1 ? "" : "s");
        return;
    }
    fib_text_addf(text, " %d run%s  ", estimate->backend_count,
                  estimate->backend_count == 1 ? "" : "s");
    fib_text_add_bytes(text, (double)estimate->device_bytes);
    fprintf(run->app.out, "  %s  about %.1f s\n", fib_text_chars(text), estimate->time_s);
}

/* --plan: what would run, and what it would take. */
static void show_plan(struct run *run)
{
    const struct fib_runner runner = {
        .registry = run->app.registry, .device = run->device, .context = run};
    struct fib_text text = {0};
    uint64_t largest = 0;
    double total_s = 0.0;
    int backends = 0;
    for (size_t i = 0; i < run->plan->count; i++) {
        struct fib_error err = {0};
        struct fib_estimate estimate = {0};
        const struct fib_plan_item *const item = &run->plan->items[i];
        if (!item->kase) {
            fprintf(run->app.err, "%s\n", item->error);
            run->exit = fib_exit_worse(run->exit, FIB_EXIT_BAD_LINES);
            continue;
        }
        fib_runner_estimate(&runner, item->kase, &estimate, &err);
        print_plan_case(run, item->kase, &estimate, &text);
        largest = estimate.device_bytes > largest ? estimate.device_bytes : largest;
        total_s += estimate.time_s;
        backends += estimate.backend_count;
    }
    fib_text_clear(&text);
    fib_text_add_bytes(&text, (double)largest);
    fprintf(run->app.out, "%zu cases, %d runs, largest %s on the device, about %.0f s\n",
            run->plan->count, backends, fib_text_chars(&text), total_s);
    fib_text_free(&text);
}

static void add_flag_columns(const struct fib_option *options, const char ***columns, size_t *count)
{
    for (const struct fib_option *option = options; option && option->name; option++) {
        bool known = fib_csv_has_column(option->name);
        for (size_t i = 0; i < *count; i++)
            known = known || strcmp((*columns)[i], option->name) == 0;
        if (known)
            continue;
        *columns = fib_realloc(*columns, (*count + 2) * sizeof(**columns));
        (*columns)[(*count)++] = option->name;
    }
}

/* Flags of all routines that the fixed columns leave out, in table order. */
static const char **flag_columns(const struct fib_registry *registry)
{
    const char **columns = fib_zalloc(sizeof(*columns));
    size_t count = 0;
    const struct fib_option *previous = NULL; /* routines of a family share one table */
    const struct fib_routine *routine = NULL;
    for (size_t n = 0; (routine = fib_registry_routine_at(registry, n)); n++) {
        if (routine->options != previous)
            add_flag_columns(routine->options, &columns, &count);
        previous = routine->options;
    }
    columns[count] = NULL;
    return columns;
}

/* ---- opening and closing ---- */

static struct fib_sink_settings sink_settings(const struct run *run)
{
    const struct fib_settings *const settings = &run->plan->settings;
    return (struct fib_sink_settings){.csv_path = settings->output_path,
                                      .json_path = settings->json_path,
                                      .force = settings->force,
                                      .append = settings->append,
                                      .resume = settings->resume,
                                      .samples = settings->samples,
                                      .table = settings->table,
                                      .out = run->app.out,
                                      .flag_columns = run->flag_columns};
}

static enum fib_status choose_device(struct run *run, struct fib_error *err)
{
    const char *const devices = run->plan->settings.devices;
    if (fib_parse_i64(devices, &run->app.device_index))
        return FIB_OK;
    return fib_fail(err, FIB_ERR_USAGE, "--devices %s: this version uses one device a run",
                    devices);
}

/* --plan runs nothing, so nothing can go wrong with the device of this process either. */
static enum fib_status open_device(struct run *run, struct fib_error *err)
{
    const struct fib_supervisor_spec spec = {.app = &run->app,
                                             .plan = run->plan,
                                             .argc = run->argc,
                                             .argv = run->argv,
                                             .interrupt = run->interrupt};
    enum fib_status st = FIB_OK;
    if (run->plan->settings.no_isolation || run->plan->settings.plan) {
        run->pool = fib_pool_create(0);
        st = fib_worker_open_device(&run->app, run->pool, &run->device, err);
        if (st == FIB_OK && !run->plan->settings.plan)
            run->environment = fib_env_block(run->app.registry, run->device, run->argc, run->argv);
        return st;
    }
    st = fib_supervisor_open(&spec, &run->supervisor, err);
    if (st == FIB_OK) {
        run->device = fib_supervisor_device(run->supervisor);
        run->environment = fib_json_clone(fib_supervisor_environment(run->supervisor));
    }
    return st;
}

static enum fib_status open_report(struct run *run, struct fib_error *err)
{
    enum fib_status st = fib_report_open(&run->sinks, run->environment, &run->report, err);
    const size_t count = run->resume ? fib_resume_count(run->resume) : 0;
    for (size_t i = 0; st == FIB_OK && i < count; i++)
        st = fib_report_replay(run->report, fib_resume_record(run->resume, i), err);
    return st;
}

/* Before anything ran, a path that cannot be written is the user's to change; a device that cannot
 * be opened is the environment's, also when it has a wrong number. */
static enum fib_exit open_run(struct run *run, struct fib_error *err)
{
    const struct fib_settings *const settings = &run->plan->settings;
    /* A process that forks has no other threads: a lock that one of them holds at that moment would
     * stay locked in the worker for ever. */
    run->interrupt = fib_interrupt_create(settings->no_isolation || settings->plan);
    if (choose_device(run, err) != FIB_OK)
        return FIB_EXIT_USAGE;
    run->flag_columns = flag_columns(run->app.registry);
    run->sinks = sink_settings(run);
    if (settings->resume && !settings->plan &&
        (fib_report_check(&run->sinks, err) != FIB_OK ||
         fib_resume_open(settings->output_path, run->flag_columns, &run->resume, err) != FIB_OK))
        return FIB_EXIT_USAGE;
    if (open_device(run, err) != FIB_OK)
        return interrupted(run) ? FIB_EXIT_INTERRUPTED : FIB_EXIT_ENVIRONMENT;
    if (!settings->plan && open_report(run, err) != FIB_OK)
        return FIB_EXIT_USAGE;
    return FIB_EXIT_OK;
}

static void close_run(struct run *run)
{
    struct fib_error err = {0};
    if (fib_report_close(&run->report, &err) != FIB_OK) {
        complain(run, err.text);
        run->exit = fib_exit_worse(run->exit, FIB_EXIT_ENVIRONMENT);
    }
    free(run->flag_columns);
    fib_json_free(&run->environment);
    if (run->supervisor)
        run->device = NULL; /* the supervisor's own */
    fib_supervisor_close(&run->supervisor);
    fib_device_close(&run->device);
    fib_pool_free(&run->pool);
    fib_resume_free(&run->resume);
    fib_interrupt_free(&run->interrupt);
}

enum fib_exit fib_run_plan(const struct fib_app *app, const struct fib_plan *plan, int argc,
                           const char *const *argv)
{
    struct fib_error err = {0};
    struct run run = {.app = *app, .plan = plan, .argc = argc, .argv = argv};
    run.exit = open_run(&run, &err);
    if (run.exit != FIB_EXIT_OK) {
        complain(&run, err.text);
    } else if (plan->count == 0) {
        complain(&run, "no case is left: --only filtered out all of them");
        run.exit = FIB_EXIT_NOTHING;
    } else {
        warn_all(&run);
        say_resumed(&run);
        if (plan->settings.plan)
            show_plan(&run);
        else
            execute(&run);
    }
    close_run(&run);
    return run.exit;
}
