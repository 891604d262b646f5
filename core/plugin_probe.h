/* What a plug-in offers, found out in a process of its own, so that loading it can neither end this
 * one nor leave threads or handlers behind. */
#ifndef FIB_CORE_PLUGIN_PROBE_H
#define FIB_CORE_PLUGIN_PROBE_H

#include "core/json.h"
#include "core/status.h"

/* The table as JSON: name, describe, backends [routine device min_cc ran], routines [name summary
 * layout cost has_reference flags [name kind required min max (as text) min_f64 max_f64 fallback
 * choices help]]. NULL with a sentence, which does not name the path, when the file is no plug-in
 * of this program or did not answer within limit_s. The caller has no other threads. */
struct fib_json *fib_plugin_probe(const char *path, double limit_s, struct fib_error *err);

#endif
