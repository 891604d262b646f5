/* Finding shared libraries: order of places, and the sentences when nothing usable is there. The
 * library found is the C mathematics library, under other names. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/library.h"

static const char *const names[] = {"libfib_not_there.so.2", "libfib_not_there.so.1", NULL};
static const struct fib_library_spec nothing = {
    .title = "Nothing", .names = names, .advice = "the package nothing has it"};

/* A folder with a link libfib_not_there.so.1 to libm, or to `content` written as a file. */
struct folder {
    char path[64], file[128];
};

static void make_folder(struct folder *folder, const char *content)
{
    void (*entry)(void) = NULL;
    void *const libm = fib_library_open(
        &(struct fib_library_spec){.names = (const char *const[]){"libm.so.6", NULL}}, NULL);
    assert_true(libm && fib_library_entry(libm, "cos", &entry, sizeof(entry)));
    snprintf(folder->path, sizeof(folder->path), "/tmp/fib_library_XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->file, sizeof(folder->file), "%s/libfib_not_there.so.1", folder->path);
    if (content) {
        FILE *const file = fopen(folder->file, "w");
        assert_non_null(file);
        fputs(content, file);
        fclose(file);
    } else {
        assert_int_equal(symlink(fib_library_path(&entry), folder->file), 0);
    }
}

static void drop_folder(const struct folder *folder)
{
    unlink(folder->file);
    rmdir(folder->path);
}

static void test_nothing_found(void **unused)
{
    struct fib_error err = {0};
    (void)unused;
    assert_null(fib_library_open(&nothing, &err));
    assert_int_equal(err.status, FIB_ERR_UNSUPPORTED);
    assert_contains(err.text, "Nothing (libfib_not_there.so.2 or libfib_not_there.so.1) not "
                              "found: looked in LD_LIBRARY_PATH");
    assert_contains(err.text, "/usr/local/cuda/lib64");
    assert_contains(err.text, "nvidia/*/lib of Python's package folders");
    assert_contains(err.text, "; the package nothing has it");
    struct fib_library_spec spec = nothing;
    spec.folder = "/nowhere";
    err = (struct fib_error){0};
    assert_null(fib_library_open(&spec, &err));
    assert_contains(err.text, "looked in --lib_path /nowhere, LD_LIBRARY_PATH");
}

static void test_folder(void **unused)
{
    struct fib_library_spec spec = nothing;
    struct fib_error err = {0};
    struct folder folder;
    double (*cosine)(double) = NULL;
    void (*missing)(void) = NULL;
    (void)unused;
    make_folder(&folder, NULL);
    spec.folder = folder.path;
    void *const handle = fib_library_open(&spec, &err);
    assert_non_null(handle);
    assert_true(fib_library_entry(handle, "cos", &cosine, sizeof(cosine)));
    assert_true(cosine(0.0) == 1.0);
    assert_contains(fib_library_path(&cosine), "lib");
    assert_false(fib_library_entry(handle, "fib_no_such_symbol", &missing, sizeof(missing)));
    assert_true(missing == NULL);
    drop_folder(&folder);
}

/* nvidia/thing/lib is a link to the folder with the library. */
static void test_python_folder(void **unused)
{
    struct fib_error err = {0};
    struct folder folder;
    char nvidia[80], thing[96], lib[112];
    (void)unused;
    make_folder(&folder, NULL);
    snprintf(nvidia, sizeof(nvidia), "%s/nvidia", folder.path);
    snprintf(thing, sizeof(thing), "%s/thing", nvidia);
    snprintf(lib, sizeof(lib), "%s/lib", thing);
    assert_int_equal(mkdir(nvidia, 0700) | mkdir(thing, 0700), 0);
    assert_int_equal(symlink(folder.path, lib), 0);
    setenv("PYTHONPATH", "/nowhere::relative", 1);
    assert_null(fib_library_open(&nothing, &err));
    char path[96];
    snprintf(path, sizeof(path), "/nowhere:%s", folder.path);
    setenv("PYTHONPATH", path, 1);
    assert_non_null(fib_library_open(&nothing, NULL));
    unsetenv("PYTHONPATH");
    unlink(lib);
    rmdir(thing);
    rmdir(nvidia);
    drop_folder(&folder);
}

static void test_broken_file(void **unused)
{
    struct fib_library_spec spec = nothing;
    struct fib_error err = {0};
    struct folder folder;
    (void)unused;
    make_folder(&folder, "no library");
    spec.folder = folder.path;
    assert_null(fib_library_open(&spec, &err));
    assert_int_equal(err.status, FIB_ERR_UNSUPPORTED);
    assert_contains(err.text, "Nothing was found but does not load: ");
    assert_contains(err.text, folder.file);
    drop_folder(&folder);
}

static void test_table(void **unused)
{
    struct {
        double (*first)(double), (*second)(double);
    } table = {NULL, NULL};
    const struct fib_library_entry_row good[] = {{"cos", 0}, {"sin", sizeof(void *)}, {NULL, 0}};
    const struct fib_library_entry_row bad[] = {{"cos", 0}, {"no_such", sizeof(void *)}, {NULL, 0}};
    struct fib_error err = {0};
    (void)unused;
    void *const handle = fib_library_open(
        &(struct fib_library_spec){.names = (const char *const[]){"libm.so.6", NULL}}, &err);
    assert_null(fib_library_fill(handle, good, &table));
    assert_true(table.first(0.0) == 1.0 && table.second(0.0) == 0.0);
    assert_string_equal(fib_library_fill(handle, bad, &table), "no_such");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_found), cmocka_unit_test(test_folder),
        cmocka_unit_test(test_python_folder), cmocka_unit_test(test_broken_file),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
