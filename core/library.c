/* Finds and loads shared libraries: a folder of the user's, the loader's own places, the CUDA
 * toolkit's folder, and the folders where Python packages keep theirs. */
#include "core/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"

/* One search. */
struct search {
    const struct fib_library_spec *spec;
    void *handle;           /* found */
    struct fib_text looked; /* places, for the sentence */
    struct fib_text failed; /* why the first file that was there did not load */
};

static void note_place(struct search *search, const char *place)
{
    if (search->looked.length > 0)
        fib_text_add(&search->looked, ", ");
    fib_text_add(&search->looked, place);
}

/* The loader's text begins with the file it could not open. When that is the library itself, it
 * simply is not there; when it is another, the library was found and lacks what it needs. */
static void note_failure(struct search *search, const char *name)
{
    const char *const text = dlerror();
    if (!text || search->failed.length > 0)
        return;
    if (!strchr(name, '/') && strncmp(text, name, strlen(name)) == 0 &&
        strstr(text, "No such file"))
        return;
    fib_text_add(&search->failed, text);
}

static bool try_name(struct search *search, const char *name)
{
    search->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!search->handle)
        note_failure(search, name);
    return search->handle != NULL;
}

/* A folder, or a pattern of folders. */
static bool try_pattern(struct search *search, const char *pattern)
{
    bool found = false;
    for (const char *const *name = search->spec->names; *name && !found; name++) {
        struct fib_text full = {0};
        glob_t matches = {0};
        fib_text_addf(&full, "%s/%s", pattern, *name);
        if (glob(fib_text_chars(&full), 0, NULL, &matches) == 0)
            for (size_t i = 0; i < matches.gl_pathc && !found; i++)
                found = try_name(search, matches.gl_pathv[i]);
        globfree(&matches);
        fib_text_free(&full);
    }
    return found;
}

static bool try_user_folder(struct search *search)
{
    if (!search->spec->folder)
        return false;
    struct fib_text place = {0};
    fib_text_addf(&place, "--lib_path %s", search->spec->folder);
    note_place(search, fib_text_chars(&place));
    fib_text_free(&place);
    return try_pattern(search, search->spec->folder);
}

static bool try_loader(struct search *search)
{
    bool found = false;
    note_place(search, "LD_LIBRARY_PATH and the system's folders");
    for (const char *const *name = search->spec->names; *name && !found; name++)
        found = try_name(search, *name);
    return found;
}

/* `prefix` followed by `suffix`, when the prefix is there. */
static bool try_under(struct search *search, const char *prefix, const char *suffix)
{
    if (!prefix || !*prefix)
        return false;
    struct fib_text pattern = {0};
    fib_text_addf(&pattern, "%s%s", prefix, suffix);
    const bool found = try_pattern(search, fib_text_chars(&pattern));
    fib_text_free(&pattern);
    return found;
}

static bool try_toolkit(struct search *search)
{
    note_place(search, "CUDA_HOME, CUDA_PATH, /usr/local/cuda/lib64");
    return try_under(search, getenv("CUDA_HOME"), "/lib64") ||
           try_under(search, getenv("CUDA_PATH"), "/lib64") ||
           try_pattern(search, "/usr/local/cuda/lib64");
}

/* Every entry of a list with colons, followed by `suffix`; with `need` only entries that hold a
 * file of that name. */
static bool try_list(struct search *search, const char *list, const char *need, const char *suffix)
{
    bool found = false;
    for (const char *at = list; at && *at && !found;) {
        const size_t length = strcspn(at, ":");
        struct fib_text entry = {0}, probe = {0};
        fib_text_add_n(&entry, at, length);
        fib_text_addf(&probe, "%s/%s", fib_text_chars(&entry), need ? need : "");
        if (length > 0 && access(fib_text_chars(&probe), F_OK) == 0)
            found = try_under(search, fib_text_chars(&entry), suffix);
        fib_text_free(&entry);
        fib_text_free(&probe);
        at += length + (at[length] == ':');
    }
    return found;
}

/* Wheels of CUDA libraries put them into nvidia/<component>/lib. */
static bool try_python(struct search *search)
{
    static const char under_prefix[] = "/lib/python3*/*-packages/nvidia/*/lib";
    note_place(search, "nvidia/*/lib of Python's package folders (PYTHONPATH, VIRTUAL_ENV, "
                       "CONDA_PREFIX, python3 on PATH, ~/.local, /usr/local, /usr)");
    return try_list(search, getenv("PYTHONPATH"), NULL, "/nvidia/*/lib") ||
           try_under(search, getenv("VIRTUAL_ENV"), under_prefix) ||
           try_under(search, getenv("CONDA_PREFIX"), under_prefix) ||
           try_list(search, getenv("PATH"), "python3",
                    "/../lib/python3*/*-packages/nvidia/*/lib") ||
           try_under(search, getenv("HOME"), "/.local/lib/python3*/*-packages/nvidia/*/lib") ||
           try_under(search, "/usr/local", under_prefix) || try_under(search, "/usr", under_prefix);
}

static void explain(const struct search *search, struct fib_error *err)
{
    struct fib_text names = {0};
    for (const char *const *name = search->spec->names; *name; name++)
        fib_text_addf(&names, "%s%s", name == search->spec->names ? "" : " or ", *name);
    const char *const advice = search->spec->advice;
    if (search->failed.length > 0)
        fib_fail(err, FIB_ERR_UNSUPPORTED, "%s was found but does not load: %s",
                 search->spec->title, fib_text_chars(&search->failed));
    else
        fib_fail(err, FIB_ERR_UNSUPPORTED, "%s (%s) not found: looked in %s%s%s",
                 search->spec->title, fib_text_chars(&names), fib_text_chars(&search->looked),
                 advice ? "; " : "", advice ? advice : "");
    fib_text_free(&names);
}

void *fib_library_open(const struct fib_library_spec *spec, struct fib_error *err)
{
    struct search search = {.spec = spec};
    if (!try_user_folder(&search) && !try_loader(&search) && !try_toolkit(&search) &&
        !try_python(&search))
        explain(&search, err);
    fib_text_free(&search.looked);
    fib_text_free(&search.failed);
    return search.handle;
}

/* A data pointer may not be cast to a function pointer in ISO C; its bytes may be copied. */
bool fib_library_entry(void *handle, const char *name, void *entry, size_t entry_bytes)
{
    void *const address = dlsym(handle, name);
    memcpy(entry, &address, entry_bytes);
    return address != NULL;
}

const char *fib_library_fill(void *handle, const struct fib_library_entry_row *rows, void *table)
{
    for (const struct fib_library_entry_row *row = rows; row->name; row++)
        if (!fib_library_entry(handle, row->name, (char *)table + row->offset, sizeof(void *)))
            return row->name;
    return NULL;
}

const char *fib_library_path(const void *entry)
{
    Dl_info info;
    void *address = NULL;
    memcpy(&address, entry, sizeof(address));
    return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "unknown path";
}
