/* What an earlier run into the same outputs has finished, read from its journal.
 *
 * A row is finished unless it is CRASHED or TIMEOUT. It counts for the same case (key), backend,
 * device and build, and once: a list that holds a case twice needs two rows. */
#ifndef FIB_CORE_RESUME_H
#define FIB_CORE_RESUME_H

#include <stdint.h>

#include "core/json.h"
#include "core/status.h"

struct fib_resume;

/* Reads the journal beside the CSV file and mends what a sudden end left behind: half a line at the
 * end of the journal is cut off, and a CSV file that lacks rows of the journal is written anew from
 * it. No files yet: nothing is finished. FIB_ERR_USAGE: the files cannot belong to such a run. */
enum fib_status fib_resume_open(const char *csv_path, const char *const *flag_columns,
                                struct fib_resume **resume,
                                struct fib_error *err);
/* Accepts NULL; resets the handle. */
void fib_resume_free(struct fib_resume **resume);

/* All rows of the journal in order, borrowed. */
size_t fib_resume_count(const struct fib_resume *resume);
const struct fib_json *fib_resume_record(const struct fib_resume *resume, size_t index);
/* Finished rows, and those among them that nobody has taken yet. */
size_t fib_resume_finished(const struct fib_resume *resume);
size_t fib_resume_untaken(const struct fib_resume *resume);
/* Lines of the journal that are no records. */
size_t fib_resume_strange(const struct fib_resume *resume);

/* Takes a finished row of this case on this backend; NULL when there is none left. */
const struct fib_json *fib_resume_take(struct fib_resume *resume, const char *case_key,
                                       const char *backend, const char *device_uuid,
                                       const char *build_id);
/* The same for a list line that was not understood. */
const struct fib_json *fib_resume_take_line(struct fib_resume *resume, int64_t line,
                                            const char *line_text);

#endif
