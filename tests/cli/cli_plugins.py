"""Plug-ins: the examples, files that are none, callbacks that fail or end the process, cheats.

Usage: cli_plugins.py FIB_BENCH FAKE_BENCH
"""
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

from common import (ROOT, Skip, expect, expect_error, expect_status, main, read_csv, read_journal,
                    run, validate)

BENCH = os.path.abspath(sys.argv[1])
PLUGINS = pathlib.Path(os.environ["FIB_TEST_PLUGINS"])
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # cheats and faults here are those of the host
NORM = ["--routine", "rmsnorm", "--batch_size", "8", "--hidden_size", "512"]
SMALL = [*NORM, "-n", "8", "-d", "0"]


def sanitized():
    return '"sanitizer": "none"' not in run(BENCH, "env", "--json").out


SANITIZED = sanitized()


def build_example(folder, name="example"):
    """The one command that its comment gives."""
    source = ROOT / "examples/plugin" / f"{name}.c"
    command = next(line for line in source.read_text().splitlines() if "-shared" in line)
    words = command.strip(" *").split()
    if not shutil.which(words[0]):
        raise Skip(f"no {words[0]}")
    words[words.index("-o") + 1] = str(folder / f"{name}.so")
    done = subprocess.run([*words, "-Wall", "-Wextra", "-Werror"], cwd=source.parent,
                          capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)
    return folder / f"{name}.so"


def row_of(folder, *words, status=0, fault=None, **options):
    """Runs one case or more, returns (result, rows by backend of the first case, all rows)."""
    env = dict(os.environ, FIB_TEST_FAULT=fault or "")
    result = run(BENCH, *words, "--output_path", folder / "o.csv", "--force", env=env, **options)
    expect_status(result, status)
    rows = read_csv(folder / "o.csv")
    validate(read_journal(folder / "o.jsonl"))
    return result, {row["backend"]: row for row in rows}, rows


def example_on_the_host(folder):
    plugin = build_example(folder)
    _, rows, _ = row_of(folder, *NORM, "--quick", "--backends", "cpu", "plugin:example", "--plugin",
                        plugin)
    expect({row["status"] for row in rows.values()} == {"PASSED"}, str(rows))
    expect(rows["plugin:example"]["resolved_backend"] == "plugin:example/rows_in_float", str(rows))
    expect(rows["cpu"]["tflops"], str(rows["cpu"]))
    _, rows, _ = row_of(folder, "--plugin", plugin, "--routine", "scaled_sum", "--rows", "8",
                        "--quick")
    row = rows["plugin:example"]
    expect(len(rows) == 1 and row["status"] == "PASSED" and row["checked_rows"], str(rows))
    expect((row["rows"], row["cols"], row["alpha"]) == ("8", "4096", "0.5"), str(row))
    record = read_journal(folder / "o.jsonl")[1]
    expect(record["cost"] == {"flops": 65536, "bytes": 393216}, str(record["cost"]))
    _, rows, _ = row_of(folder, *NORM, "--input_dtype", "float32", "--quick", "--backends",
                        "plugin:example", "cpu", "--plugin", plugin)
    expect(rows["plugin:example"]["status"] == "UNSUPPORTED" and
           "bfloat16 only" in rows["plugin:example"]["reason"], str(rows))


def example_in_the_lists(folder):
    plugin = build_example(folder)
    result = run(BENCH, "list", "--plugin", plugin)
    expect_status(result, 0)
    expect("scaled_sum                                plugin:example\n" in result.out, result.out)
    expect("cpu, plugin:example" in result.out, result.out)
    result = run(BENCH, "describe", "scaled_sum", "--plugin", plugin)
    expect_status(result, 0)
    for part in ["out = alpha * x + y", "--rows N", "(-1000.0 .. 1000.0; default 0.5)",
                 "plugin:example runs here", "flops = 2 rows cols"]:
        expect(part in result.out, f"{part!r} not in {result.out}")
    result = run(BENCH, "--routine", "scaled_sum", "--help", f"--plugin={plugin}")
    expect_status(result, 0)
    expect("--rows" in result.out, result.out)
    result = run(BENCH, "doctor", "--plugin", plugin)
    expect(f"plugin:example   plug-in {plugin}  ok" in result.out, result.out)
    result = run(BENCH, "--plugin", plugin, "--routine", "scaled_sum", "--rows", "1,2", "--plan")
    expect_status(result, 0)
    expect("2 cases" in result.out, result.out)


def flags_of_an_own_routine(folder):
    plugin = build_example(folder)
    words = ["--plugin", plugin, "--routine", "scaled_sum"]
    expect_error(run(BENCH, *words, "--rows", "0"), "--rows 0", "1 .. 1048576")
    expect_error(run(BENCH, *words, "--row", "3", "--alhpa", "1"), "--alhpa", "--alpha")
    expect_error(run(BENCH, *words), "--rows")
    _, _, rows = row_of(folder, *words, "--rows", "1:4:*2", "--alpha", "2,-1", "--quick")
    expect(len(rows) == 6 and {row["status"] for row in rows} == {"PASSED"}, str(rows))
    _, rows, _ = row_of(folder, *words, "--rows", "1048576", "--cols", "1048576", "--quick", status=2)
    row = rows["plugin:example"]
    expect(row["status"] == "UNSUPPORTED" and "--rows times --cols" in row["reason"], str(row))


def repro_names_the_plugins(folder):
    plugin = build_example(folder)
    _, rows, _ = row_of(folder, "--plugin", plugin, PLUGINS / "faulty.so", "--routine", "scaled_sum",
                        "--rows", "3", "--quick", "--generate_repro_command")
    row = rows["plugin:example"]
    words = shlex.split(row["repro_command"])
    expect(words.count("--plugin") == 1 and str(PLUGINS / "faulty.so") in words, str(words))
    _, again, _ = row_of(folder, *words[1:])
    expect(again["plugin:example"]["case_key"] == row["case_key"], str(words))


def with_and_without_a_worker(folder):
    words = ["--plugin", PLUGINS / "faulty.so", "--routine", "test_copy", "--quick"]
    _, one, _ = row_of(folder, *words)
    _, two, _ = row_of(folder, *words, "--no_isolation")
    for name in ("status", "case_key", "checked_rows", "max_abs_err", "resolved_backend"):
        expect(one["plugin:faulty"][name] == two["plugin:faulty"][name], f"{name}: {one} {two}")


def a_list_with_plugins(folder):
    """Two plug-ins, an own routine among the program's; in a line --plugin has no place."""
    plugin = build_example(folder)
    path = folder / "l.txt"
    path.write_text("--routine scaled_sum --rows 4 --quick\n"
                    "--routine rmsnorm --batch_size 4 --hidden_size 64 --quick "
                    "--backends plugin:example plugin:faulty cpu\n"
                    "--routine scaled_sum --rows 4 --quick --plugin other.so\n"
                    "--routine test_copy --count 5 --quick\n")
    result, _, rows = row_of(folder, "--testlist", path, "--plugin", plugin, "--plugin",
                             PLUGINS / "faulty.so")
    expect([row["status"] for row in rows] == ["PASSED"] * 6, str(rows))
    expect("l.txt:3" in result.out and "--plugin" in result.out, result.out)


def files_that_are_no_plugins(folder):
    (folder / "text.so").write_text("no library\n")
    for path, parts in [
            (folder / "absent.so", ["cannot be opened: No such file"]),
            (folder, ["cannot be loaded"]),
            (folder / "text.so", ["cannot be loaded", "text.so"]),
            (PLUGINS / "no_table.so", ["has no symbol fib_plugin_table"]),
            (PLUGINS / "other_abi.so", ["has plug-in ABI 7, this program takes ABI 1"]),
            (PLUGINS / "odd_size.so", ["struct fib_plugin_backend has", "bytes"])]:
        result, rows, _ = row_of(folder, *SMALL, "--backends", "plugin:faulty", "cpu", "--plugin",
                                 path, status=7)
        lines = result.err.strip().split("\n")
        expect(len(lines) == 1 and lines[0].startswith(f"fib-bench: --plugin {path}: "), result.err)
        for part in parts:
            expect(part in lines[0], f"{part!r} not in {lines[0]!r}")
        row = rows["plugin:faulty"]
        expect(row["status"] == "UNSUPPORTED" and f"--plugin {path}" in row["reason"], str(row))
        expect(rows["cpu"]["status"] == "PASSED", str(rows))
    expect_error(run(BENCH, "--plugin"), "--plugin needs a value")
    expect_error(run(BENCH, *SMALL, "--plugin="), "--plugin needs a value")


def loading_ends_the_process(folder):
    for deed, how in [("abort", "signal 6 (abort)"), ("exit", "exit status 0")]:
        result, rows, _ = row_of(folder, *SMALL, "--backends", "cpu", "plugin:faulty", "--plugin",
                                 PLUGINS / "faulty.so", status=7, fault=f"load:{deed}")
        expect(f"faulty.so: the process that loaded it ended " in result.err and
               (how in result.err or SANITIZED), result.err)
        expect(rows["cpu"]["status"] == "PASSED" and
               rows["plugin:faulty"]["status"] == "UNSUPPORTED", str(rows))


def a_list_without_its_plugin(folder):
    """Lines that need it are bad or refused; the others run."""
    path = folder / "l.txt"
    path.write_text("--routine test_copy --quick\n"
                    "--routine rmsnorm --batch_size 4 --hidden_size 64 --quick "
                    "--backends plugin:faulty\n")
    result, _, rows = row_of(folder, "--testlist", path, "--plugin", PLUGINS / "other_abi.so",
                             status=7)
    expect([(row["backend"], row["status"]) for row in rows] ==
           [("", "ERROR"), ("plugin:faulty", "UNSUPPORTED"), ("cpu", "PASSED")], str(rows))
    expect("l.txt:1: unknown routine test_copy" in result.err, result.err)
    expect("takes ABI 1" in rows[1]["reason"], str(rows[1]))


def same_plugin_twice(folder):
    path = PLUGINS / "faulty.so"
    result = run(BENCH, *SMALL, "--plugin", path, "--plugin", path)
    expect_status(result, 7)
    expect(f"--plugin {path}: plugin:faulty is there already" in result.err, result.err)


def no_plugin_of_that_name(folder):
    _, rows, _ = row_of(folder, *SMALL, "--backends", "plugin:mine", "cpu")
    expect(rows["plugin:mine"]["status"] == "UNSUPPORTED" and
           "--plugin PATH loads one" in rows["plugin:mine"]["reason"], str(rows))
    _, rows, _ = row_of(folder, "--routine", "mm_bf16", "--m", "2", "--n", "16", "--k", "32", "--quick",
                        "--backends", "plugin:faulty", "cpu", "--plugin", PLUGINS / "faulty.so")
    expect(rows["plugin:faulty"]["reason"] == "plugin:faulty has nothing for mm_bf16 on a CPU",
           str(rows))


def check_fault(folder, fault, status, reason, exit_status, first):
    """The case with the fault gets its row, the next case of the list runs."""
    path = folder / "l.txt"
    path.write_text(f"{first} -n 8 -d 0\n{' '.join(SMALL)} --backends cpu\n")
    _, by_backend, rows = row_of(folder, "--testlist", path, "--plugin", PLUGINS / "faulty.so",
                                 fault=fault, status=exit_status)
    row = by_backend["plugin:faulty"]
    expect(row["status"] == status, f"{fault}: {row['status']} {row['reason']}")
    expect(reason in row["reason"] or (SANITIZED and "ended" in row["reason"]),
           f"{fault}: {row['reason']}")
    expect(status in ("PASSED", "UNCHECKED") or row["median_time"] == "", str(row))
    expect(rows[-1]["backend"] == "cpu" and rows[-1]["status"] == "PASSED", str(rows[-1]))
    return rows


def faults_of_a_backend(folder):
    ended = "worker ended by signal 6 (abort) in plugin:faulty, "
    for fault, status, reason, exit_status in [
            ("none:", "PASSED", "", 0),
            ("supports:fail", "UNSUPPORTED", "needs a full moon", 0),
            ("supports:abort", "CRASHED", ended + "while it was prepared", 5),
            ("prepare:fail", "ERROR", "prepare: the moon is full", 8),
            ("prepare:mute", "ERROR", "prepare: failed without saying why", 8),
            ("prepare:no_memory", "OOM", "prepare: wants 1 EiB", 0),
            ("prepare:odd", "ERROR", "prepare returned 77; the ABI has 0 .. 3", 8),
            ("prepare:abort", "CRASHED", ended + "while it was prepared", 5),
            ("prepare:exit", "CRASHED", "worker ended with exit status 0 in plugin:faulty", 5),
            ("enqueue:fail", "ERROR", "enqueue: the moon is full", 8),
            ("enqueue:odd", "ERROR", "enqueue returned 77", 8),
            ("enqueue:abort", "CRASHED", ended + "in its first calls", 5),
            ("enqueue:exit", "CRASHED", "worker ended with exit status 0 in plugin:faulty", 5),
            ("enqueue:input", "INCORRECT", "input", 4),
            ("enqueue:past", "INCORRECT", "y", 4),
            ("teardown:fail", "PASSED", "", 0),
            ("teardown:abort", "PASSED", "", 0)]:
        rows = check_fault(folder, fault, status, reason, exit_status,
                           f"{' '.join(NORM)} --backends cpu plugin:faulty")
        expect(len(rows) == 3 and [row["status"] for row in rows if row["backend"] == "cpu"] ==
               ["PASSED"] * 2, f"{fault}: {rows}")


def a_backend_that_hangs(folder):
    check_fault(folder, "enqueue:hang", "TIMEOUT", "still running after 1 s", 5,
                f"{' '.join(NORM)} --backends cpu plugin:faulty --timeout_s 1")


def faults_of_a_routine(folder):
    ended = "worker ended by signal 6 (abort) "
    most = "must be 1 .. 8000, the bytes of the tensors"
    for fault, status, reason, exit_status in [
            ("none:", "PASSED", "", 0),
            ("describe:fail", "ERROR", "describe: the moon is full", 8),
            ("describe:odd", "ERROR", "describe returned 77", 8),
            ("describe:abort", "CRASHED", ended + "before any backend ran; the routine is that of "
             "plugin:faulty", 5),
            ("describe:many", "ERROR", "describe: 1000 tensors; allowed: 1 .. 16", 8),
            ("describe:shape", "ERROR", "dimension 0 of tensor y is -3", 8),
            ("describe:rows", "ERROR", "tensor y has 1000 elements, which are not 1000 rows of 7", 8),
            ("traffic:fail", "ERROR", "traffic: the moon is full", 8),
            ("traffic:abort", "CRASHED", ended + "before any backend ran", 5),
            ("traffic:nan", "ERROR", "traffic: nan bytes; " + most, 8),
            ("traffic:none", "ERROR", "traffic: 0 bytes; " + most, 8),
            ("traffic:huge", "ERROR", "traffic: 1e+30 bytes; " + most, 8),
            ("traffic:negative", "ERROR", "traffic: -1 flops; must be 0 .. 1e21", 8),
            ("reference:abort", "CRASHED", ended + "while results were checked; the routine is that "
             "of plugin:faulty", 5)]:
        rows = check_fault(folder, fault, status, reason, exit_status, "--routine test_copy")
        expect(len(rows) == 2, f"{fault}: {rows}")


def a_routine_without_a_reference(folder):
    for routine, status, reason, exit_status in [
            ("test_trust", "UNCHECKED", "the routine has no reference", 0),
            ("test_idle", "INCORRECT", "never written", 4)]:
        check_fault(folder, "none:", status, reason, exit_status, f"--routine {routine}")
    result = run(BENCH, "describe", "test_trust", "--plugin", PLUGINS / "faulty.so")
    expect("has no reference: rows are UNCHECKED" in result.out, result.out)


def absurd_flag_values(folder):
    words = ["--plugin", PLUGINS / "faulty.so", "--routine", "test_copy"]
    _, rows, _ = row_of(folder, *words, "--count", 2**63 - 1, status=2)
    expect(rows["plugin:faulty"]["status"] == "ERROR" and
           "tensor x would take" in rows["plugin:faulty"]["reason"], str(rows))
    expect_error(run(BENCH, *words, "--style", "odd"), "--style", "plain")


def cheats_are_caught(folder):
    """Each is INCORRECT, cold and hot, beside an honest backend; its twin passes everywhere."""
    for cheat, cold, hot in [
            ("cache", "INCORRECT", "INCORRECT"), ("aside", "INCORRECT", "INCORRECT"),
            ("nothing", "INCORRECT", "INCORRECT"), ("pinned", "INCORRECT", "INCORRECT"),
            ("later", "INCORRECT", "INCORRECT"),
            # of one slot all calls are meant to be alike
            ("reuse", "INCORRECT", "PASSED")]:
        for cache, expected in (("cold", cold), ("hot", hot)):
            words = [*NORM, "--quick", "--cache", cache, "--plugin"]
            _, rows, _ = row_of(folder, *words, PLUGINS / f"cheat-{cheat}.so", "--backends", "cpu",
                                f"plugin:cheat-{cheat}", status=4 if expected == "INCORRECT" else 0)
            row = rows[f"plugin:cheat-{cheat}"]
            expect(row["status"] == expected, f"{cheat} {cache}: {row['status']} {row['reason']}")
            expect(expected == "PASSED" or row["median_time"] == "", f"{cheat}: a time")
            expect(rows["cpu"]["status"] == "PASSED", f"{cheat} {cache}: {rows['cpu']}")
            print(f"        {cheat} {cache}: {row['status']} {row['reason']}")
            _, rows, _ = row_of(folder, *words, PLUGINS / f"honest-{cheat}.so", "--backends",
                                f"plugin:honest-{cheat}")
            row = rows[f"plugin:honest-{cheat}"]
            expect(row["status"] == "PASSED", f"honest {cheat} {cache}: {row}")


main([example_on_the_host, example_in_the_lists, flags_of_an_own_routine, repro_names_the_plugins,
      with_and_without_a_worker, a_list_with_plugins, files_that_are_no_plugins,
      loading_ends_the_process, a_list_without_its_plugin, same_plugin_twice,
      no_plugin_of_that_name, faults_of_a_backend,
      a_backend_that_hangs, faults_of_a_routine, a_routine_without_a_reference, absurd_flag_values,
      cheats_are_caught])
