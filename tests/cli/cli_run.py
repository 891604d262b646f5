"""The program as a user runs it: rows, files, sweeps, lists, interrupts, speed of the small verbs.

Usage: cli_run.py FIB_BENCH FAKE_BENCH
"""
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

from common import (ROOT, SHARED, Skip, expect, expect_status, main, no_constant, read_csv,
                    read_journal, run, validate)

BENCH, FAKE = map(os.path.abspath, sys.argv[1:3])
BUILT = ["rmsnorm", "fused_add_rmsnorm", "gemma_rmsnorm", "gemma_fused_add_rmsnorm", "rmsnorm_quant",
         "fused_add_rmsnorm_quant", "layernorm_quant", "mm_bf16", "bmm_bf16", "bmm_fp8"]
NORM = ["--batch_size", "3", "--hidden_size", "65"]
GEMM = ["--m", "5", "--n", "33", "--k", "70"]


def every_built_routine(folder):
    for name in BUILT:
        shape = GEMM if "mm" in name and "norm" not in name else NORM
        out = folder / f"{name}.csv"
        result = run(BENCH, "--routine", name, *shape, "--quick", "--output_path", out)
        expect_status(result, 0)
        row = read_csv(out)[0]
        expect(row["status"] == "PASSED" and row["backend"] == "cpu" and row["resolved_backend"],
               str(row))
        expect(float(row["median_time"]) > 0 and int(row["checked_rows"]) > 0, str(row))
        expect(result.out.startswith("[PERF] cpu            :: median time "), result.out)


def comparison_of_two_real_backends(folder):
    result = run(BENCH, "--routine", "mm_bf16", "--m", "16", "--n", "256", "--k", "512", "--backends",
                 "cpu", "openblas", "--quick", "--output_path", folder / "o.csv")
    expect_status(result, 0)
    rows = read_csv(folder / "o.csv")
    if rows[1]["status"] == "UNSUPPORTED":
        print("skipped: OpenBLAS is not here: " + rows[1]["reason"])
        return
    expect([row["status"] for row in rows] == ["PASSED", "PASSED"], str(rows))
    expect(rows[0]["arm_order"] == "abba", rows[0]["arm_order"])
    expect("fastest" in result.out, result.out)


def sweep_gives_seven_cases(folder):
    out = folder / "o.csv"
    expect_status(run(BENCH, "--routine", "mm_bf16", "--m", "1:64:*2", "--n", "32", "--k", "64",
                      "--quick", "--output_path", out), 0)
    expect([row["m"] for row in read_csv(out)] == ["1", "2", "4", "8", "16", "32", "64"], "sweep")
    expect_status(run(BENCH, "--routine", "mm_bf16", "--m", "1,2", "--n", "32,48", "--k", "64",
                      "--zip", "m,n", "--quick", "--output_path", folder / "z.csv"), 0)
    expect([(row["m"], row["n"]) for row in read_csv(folder / "z.csv")] ==
           [("1", "32"), ("2", "48")], "zip")


def case_56_tags_survive(folder):
    for tag in ['R1, "causal" run', "two\nlines", " edge ", "it's", "日本", "a\\b`$(x)`", "-x"]:
        out = folder / "o.csv"
        result = run(BENCH, "--routine", "rmsnorm", *NORM, "--quick", f"--case_tag={tag}",
                     "--generate_repro_command", "--output_path", out, "--json_path",
                     folder / "o.json", "--force")
        expect_status(result, 0)
        row = read_csv(out)[0]
        expect(row["case_tag"] == tag, repr(row["case_tag"]))
        document = json.loads((folder / "o.json").read_text(), parse_constant=no_constant)
        expect(document["results"][0]["params"]["case_tag"] == tag, "JSON")
        words = shlex.split(row["repro_command"])
        expect(words[0] == "fib-bench", words[0])
        again = run(BENCH, *words[1:], "--output_path", folder / "p.csv", "--force")
        expect_status(again, 0)
        repeated = read_csv(folder / "p.csv")[0]
        expect(repeated["case_key"] == row["case_key"] and repeated["case_tag"] == tag,
               f"{words}: {repeated['case_key']} {row['case_key']}")


def case_57_and_schema(folder):
    path = folder / "l.txt"
    path.write_text("--routine rmsnorm --batch_size 2 --hidden_size 64 --quick --samples\n"
                    "--routine apply_rope --batch_size 2 --seq_len 8 --num_qo_heads 2 "
                    "--num_kv_heads 1 --head_dim 64\n"
                    "--routine rmsnorm --batch_size 2 --hidden_size 64 -n 1\n"
                    "--routine rmsnorm --oops\n"
                    "--routine rmsnorm --batch_size 2 --hidden_size 64 --no_check --quick\n")
    result = run(BENCH, "--testlist", path, "--output_path", folder / "o.csv", "--json_path",
                 folder / "o.json", "--samples")
    expect_status(result, 8)
    journal = read_journal(folder / "o.jsonl")
    expect(journal[0]["kind"] == "environment", "the journal opens with the environment")
    records = journal[1:]
    expect([r["status"] for r in records] ==
           ["PASSED", "UNSUPPORTED", "PASSED", "ERROR", "UNCHECKED"], str(records))
    expect(records[0]["time"]["samples"], "samples are there on request")
    expect(records[2]["time"]["std"] is None, "one sample has no std")
    expect(isinstance(records[0]["time"]["median"], int), "picoseconds are integers")
    rows = read_csv(folder / "o.csv")
    expect(rows[1]["median_time"] == "" and rows[2]["std_time"] == "", "empty cells")
    expect(not any(cell in ("None", "nan", "inf") for row in rows for cell in row.values()),
           "None, nan or inf in a cell")
    document = json.loads((folder / "o.json").read_text(), parse_constant=no_constant)
    expect(len(document["results"]) == 5, "all results in the document")
    validate(journal)


def case_58_any_locale(folder):
    env = dict(os.environ, LC_ALL="de_DE.UTF-8", LANG="de_DE.UTF-8")
    result = run(BENCH, "--routine", "rmsnorm", *NORM, "--eps", "1e-5", "--quick", "--output_path",
                 folder / "o.csv", env=env)
    expect_status(result, 0)
    row = read_csv(folder / "o.csv")[0]
    expect(row["eps"] == "1e-05" and "," not in row["median_time"], str(row))
    expect(len(row["median_time"].replace(".", "").lstrip("0")) >= 9 or
           float(row["median_time"]) > 0, row["median_time"])


def same_data_for_equal_lines(folder):
    line = "--routine rmsnorm --batch_size 7 --hidden_size 130 --quick"
    other = "--routine fused_add_rmsnorm --batch_size 70 --hidden_size 1300 --quick"
    bad = "--routine rmsnorm --batch_size 0 --hidden_size 64"
    for order in ([line, other, bad, other, line], [line, bad, other, line, other]):
        (folder / "l.txt").write_text("\n".join(order))
        run(BENCH, "--testlist", folder / "l.txt", "--output_path", folder / "o.csv", "--force")
        sums = [r["check"]["output_checksum"] for r in read_journal(folder / "o.jsonl")[1:]
                if r["routine"] == "rmsnorm" and r["check"]]
        expect(len(sums) == 2 and sums[0] == sums[1], str(sums))


def list_defaults_and_precedence(folder):
    (folder / "l.txt").write_text(
        "--routine rmsnorm --batch_size 2 --hidden_size 64 --random_seed 7\n"
        "--routine rmsnorm --batch_size 2 --hidden_size 64 --output_path elsewhere.csv\n")
    result = run(BENCH, "--testlist", folder / "l.txt", "--random_seed", "9", "--quick",
                 "--output_path", folder / "o.csv", cwd=folder)
    expect_status(result, 0)
    expect([row["random_seed"] for row in read_csv(folder / "o.csv")] == ["7", "9"], "defaults")
    expect("output_path" in result.out and "WARNING" in result.out, result.out)
    expect(not (folder / "elsewhere.csv").exists(), "a list line wrote a file")


def plain_text_off_terminals(folder):
    result = run(BENCH, "--routine", "mm_bf16", *GEMM, "--backends", "cpu", "openblas", "--quick",
                 "--table")
    expect("\x1b" not in result.out + result.err and "\r" not in result.out + result.err,
           "control codes off a terminal")
    expect(result.err == "", f"stderr: {result.err}")
    expect(max(map(len, result.out.split("\n"))) <= 220, "a very long line")


def interrupted_run_keeps_its_rows(folder):
    (folder / "l.txt").write_text("--routine rmsnorm --batch_size 2 --hidden_size 64\n" * 400)
    with open(folder / "out", "w") as out, open(folder / "err", "w") as err:
        process = subprocess.Popen([BENCH, "--testlist", folder / "l.txt", "--output_path",
                                    folder / "o.csv"], stdout=out, stderr=err)
        deadline = time.time() + 60
        while time.time() < deadline:
            if (folder / "o.csv").exists() and len((folder / "o.csv").read_text().split("\n")) > 4:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        status = process.wait(60)
    expect(status == 130, f"status {status}: {(folder / 'err').read_text()}")
    rows = read_csv(folder / "o.csv")
    expect(3 <= len(rows) < 400 and all(row["status"] == "PASSED" for row in rows), "rows kept")
    expect(len(read_journal(folder / "o.jsonl")) == len(rows) + 1, "journal agrees")
    expect("exit status 130" in (folder / "out").read_text(), "summary printed")


def one_record_feeds_every_output(folder):
    result = run(BENCH, "--routine", "rmsnorm", *NORM, "--quick", "--table", "--output_path",
                 folder / "o.csv", "--json_path", folder / "o.json")
    expect_status(result, 0)
    journal = read_journal(folder / "o.jsonl")[1]
    document = json.loads((folder / "o.json").read_text())["results"][0]
    row = read_csv(folder / "o.csv")[0]
    expect(journal == document, "journal and document differ")
    expect(float(row["median_time"]) == journal["time"]["median"] / 1e9, row["median_time"])
    expect(float(row["tb_per_sec"]) == journal["rate"]["tb_per_sec"], row["tb_per_sec"])
    expect(f"median time {journal['time']['median'] / 1e9:.3f} ms" in result.out, result.out)


def progress_on_a_terminal_only(folder):
    (folder / "l.txt").write_text("--routine rmsnorm --batch_size 2 --hidden_size 64 --quick\n" * 4)
    try:
        master, slave = os.openpty()
    except OSError as error:  # a root without /dev/pts
        raise Skip(f"no terminal to be had: {error}")
    process = subprocess.Popen([BENCH, "--testlist", folder / "l.txt"], stdout=subprocess.PIPE,
                               stderr=slave)
    os.close(slave)
    seen = b""
    while True:
        try:
            chunk = os.read(master, 4096)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    out = process.stdout.read()
    expect(process.wait(60) == 0, "status")
    expect(b"/4" in seen and b"left" in seen and b"\r" in seen, repr(seen[:300]))
    expect(b"\x1b" not in out and b"\r" not in out, "control codes on stdout")


def small_verbs_work(folder):
    for words in (["--help"], ["list"], ["list", "--family", "norm"], ["list", "--markdown"],
                  ["list", "--models"], ["list", "--flags"], ["describe", "rmsnorm"],
                  ["describe", "BatchDecodeWithPagedKVCacheWrapper"], ["--version"], ["env"],
                  ["doctor"], ["--routine", "rmsnorm", "--help"]):
        result = run(BENCH, *words)
        expect_status(result, 0)
        expect(len(result.out) > 10 and result.err == "", f"{words}: {result.err}")
    block = json.loads(run(BENCH, "env", "--json").out, parse_constant=no_constant)

    def leaves(value):
        return sum(map(leaves, value.values())) if isinstance(value, dict) else 1
    expect(leaves(block) >= 30, f"{leaves(block)} environment fields")
    validate([block])


def sample_list_of_the_reference(folder):
    path = SHARED / "testlists/flashinfer_0.6.18_sample.txt"
    if not path.exists():
        print("skipped: the reference's sample list is not on this machine")
        return
    result = run(BENCH, "--testlist", path, "--output_path", folder / "o.csv", timeout=1200)
    lines = [line for line in path.read_text().split("\n")
             if line.strip() and not line.startswith("#")]
    rows = read_csv(folder / "o.csv")
    records = read_journal(folder / "o.jsonl")[1:]
    validate(records)
    expect({r["line"] for r in records} >= set(), "lines")
    expect(len({r["case_index"] for r in records}) == len(lines), "every line yields rows")
    for record in records:
        if record["routine"] in BUILT and record["backend"] == "cpu":
            expect(record["status"] == "PASSED", str(record)[:600])
    with_cpu = {r["case_index"] for r in records
                if r["backend"] == "cpu" and r["status"] == "PASSED"}
    built = {r["case_index"] for r in records if r["routine"] in BUILT}
    expect(built and built <= with_cpu, f"lines without a PASSED cpu row: {built - with_cpu}")
    for row in rows:
        if row["routine"] not in BUILT:
            expect(row["status"] == "UNSUPPORTED" and row["reason"], str(row)[:600])
    expect_status(result, 0)


main([every_built_routine, comparison_of_two_real_backends, sweep_gives_seven_cases,
      case_56_tags_survive, case_57_and_schema, case_58_any_locale, same_data_for_equal_lines,
      list_defaults_and_precedence, plain_text_off_terminals, interrupted_run_keeps_its_rows,
      one_record_feeds_every_output, progress_on_a_terminal_only, small_verbs_work, sample_list_of_the_reference])
