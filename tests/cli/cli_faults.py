"""Backends that crash, hang and leak, killed workers, killed parents: one row each, nothing lost.

Usage: cli_faults.py FAULT_BENCH
"""
import collections
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

from common import expect, expect_error, expect_status, main, read_csv, read_journal, run, validate

BENCH = os.path.abspath(sys.argv[1])
# Under ASan a fault is reported by the process itself, which then ends with a status of its own.
SANITIZED = '"sanitizer":"none"' not in run(BENCH, "env", "--json").out.replace('": "', '":"')
SMALL = "--routine rmsnorm --batch_size 8 --hidden_size 512 --cache hot -n 8 -d 0"
ENDED = r"worker ended (by signal \d+ \([a-z ]+\)|with exit status \d+)"


def listed(folder, *lines):
    (folder / "l.txt").write_text("\n".join(lines) + "\n")
    return folder / "l.txt"


def run_list(folder, lines, *words, **options):
    return run(BENCH, "--testlist", listed(folder, *lines), "--output_path", folder / "o.csv",
               *words, **options)


def statuses(rows):
    return [(row["backend"], row["status"]) for row in rows]


def by_backend(rows):
    return {row["backend"]: row for row in rows}


def check_neighbours(folder, fault, status, reason, *words, exit_status=5):
    """The faulty backend gets its row, its neighbours and the next case are right."""
    case = f"{SMALL} --backends cpu {fault} fake-good {' '.join(words)}"
    result = run_list(folder, [case, SMALL], "--force")
    expect_status(result, exit_status)
    rows = read_csv(folder / "o.csv")
    expect(len(rows) == 4, f"{fault}: {statuses(rows)}")
    first, last = by_backend(rows[:3]), rows[3]
    expect(first[fault]["status"] == status, f"{fault}: {first[fault]}")
    expect(re.search(reason, first[fault]["reason"]), f"{fault}: {first[fault]['reason']}")
    expect(first[fault]["median_time"] == "", f"{fault}: a time: {first[fault]}")
    expect(first["cpu"]["status"] == first["fake-good"]["status"] == last["status"] == "PASSED",
           f"{fault}: {statuses(rows)}")
    expect(float(first["cpu"]["median_time"]) > 0, f"{fault}: no time")
    records = read_journal(folder / "o.jsonl")
    validate(records)
    sums = {r["check"]["output_checksum"] for r in records[1:] if r["status"] == "PASSED"}
    expect(len(sums) == 1, f"{fault}: output of neighbours or the next case differs: {sums}")
    return result


def faults_in_the_result(folder):
    for fault, reason in [("fake-guard", "beyond|guard|past"), ("fake-wrong", ""),
                          ("fake-zeros", ""), ("fake-unwritten", "writ"), ("fake-input", "input"),
                          ("fake-later", ""), ("fake-stale", "")]:
        check_neighbours(folder, fault, "INCORRECT", reason, exit_status=4)


def faults_that_end_the_process(folder):
    for fault, how in [("fake-segv", "11"), ("fake-far", "11"), ("fake-abort", "6"),
                       ("fake-stack", "11"), ("fake-kill", "9"), ("fake-late-segv", "11"),
                       ("fake-early-segv", "11")]:
        end = ENDED if SANITIZED else rf"worker ended by signal {how} "
        step = ("prepared" if "early" in fault else "timed" if "late" in fault or "kill" in fault
                else "first calls")
        check_neighbours(folder, fault, "CRASHED", rf"{end}.* in {fault}, .*{step}")
    check_neighbours(folder, "fake-exit0", "CRASHED",
                     "worker ended with exit status 0 in fake-exit0, in its first calls")
    check_neighbours(folder, "fake-exit3", "CRASHED",
                     "worker ended with exit status 3 in fake-exit3, while it was timed")


def faults_that_hang(folder):
    check_neighbours(folder, "fake-sleep", "TIMEOUT", "still running after 0.2 s .--timeout_s.* in "
                     "fake-sleep, in its first calls", "--timeout_s", "0.2")
    check_neighbours(folder, "fake-spin", "TIMEOUT", "in fake-spin, while it was timed",
                     "--timeout_s", "0.2")


def memory_that_is_gone_comes_back(folder):
    if SANITIZED:
        print("(a sanitizer does not survive a limit on the address space)")
    else:
        check_neighbours(folder, "fake-hog", "OOM", "bytes|memory", exit_status=0)
        # needs more than the hog has left: only a new process has it
        large = "--routine rmsnorm --batch_size 1024 --hidden_size 8192 --cache hot -n 3 -d 0"
        result = run_list(folder, [f"{SMALL} --backends fake-hog", large], "--force")
        expect_status(result, 0)
        expect([row["status"] for row in read_csv(folder / "o.csv")] == ["OOM", "PASSED"],
               result.out)
    check_neighbours(folder, "fake-oom", "OOM", "99 GiB", exit_status=0)


def a_lost_device_costs_one_row(folder):
    check_neighbours(folder, "fake-lose", "CRASHED", "illegal memory access")
    check_neighbours(folder, "fake-early-lose", "CRASHED", "illegal memory access")
    result = run_list(folder, [f"{SMALL} --backends cpu fake-early-lose fake-good", SMALL],
                      "--force", "--no_isolation")
    expect_status(result, 7)
    expect("--no_isolation" in result.err, result.err)
    expect([row["status"] for row in read_csv(folder / "o.csv")] == ["CRASHED"] * 3, "rows")


def noise_stays_off_stdout(folder):
    case = [*SMALL.split(), "--backends", "fake-noise", "fake-good"]
    result = run(BENCH, *case, "--output_path", folder / "o.csv")
    expect_status(result, 0)
    expect("noise ::" not in result.out and "\x01" not in result.out, result.out)
    expect("noise ::" in result.err, "what a backend prints is not lost")
    expect(statuses(read_csv(folder / "o.csv")) ==
           [("fake-noise", "PASSED"), ("fake-good", "PASSED")], "rows")


def stdin_is_not_the_workers(folder):
    result = run(BENCH, *SMALL.split(), stdin=b"x" * 100000)
    expect_status(result, 0)


def several_faults_and_both_states(folder):
    result = run_list(folder, [f"{SMALL} --cache both --backends fake-segv cpu fake-late-segv "
                               "fake-refuse fake-abort", SMALL])
    expect_status(result, 5)
    rows = read_csv(folder / "o.csv")
    count = collections.Counter((r["backend"], r["status"]) for r in rows[:-1])
    expect(count == {("fake-segv", "CRASHED"): 2, ("cpu", "PASSED"): 2, ("fake-abort", "CRASHED"): 2,
                     ("fake-late-segv", "CRASHED"): 2, ("fake-refuse", "UNSUPPORTED"): 2},
           str(count))
    expect(len({r["case_key"] for r in rows[:-1]}) == 2, "a key for each cache state")
    expect(rows[-1]["status"] == "PASSED", "the next case")
    expect("5 CRASHED" not in result.out and "6 CRASHED" in result.out, result.out)


def introduced_once(folder):
    result = run(BENCH, *SMALL.split(), "--backends", "fake-segv", "cpu", "fake-abort", "-vv")
    expect_status(result, 5)
    expect(result.out.count("args = Namespace(") == 1, result.out)


def same_output_without_isolation(folder):
    words = [*SMALL.split(), "--backends", "cpu", "fake-wrong", "fake-refuse"]
    results = [run(BENCH, *words, *more) for more in ([], ["--no_isolation"])]
    for result in results:
        expect_status(result, 4)
    one, other = (re.sub(r"\d[\d.]*", "#", result.out) for result in results)
    expect(one == other, f"{one}\n{other}")


# ---- kills and resuming ----

def cases(count):
    return [f"--routine rmsnorm --batch_size {2 + i} --hidden_size 2048 --cache hot --budget_ms 20"
            for i in range(count)]


def processes(folder):
    """Processes of a run into this folder, parents and workers: they have the same arguments."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            continue
        if state != "Z" and str(folder / "o.csv").encode() in words:
            found.append(int(entry.name))
    return found


def expect_no_process(folder):
    deadline = time.time() + 2
    while processes(folder) and time.time() < deadline:
        time.sleep(0.01)
    expect(not processes(folder), f"left running: {processes(folder)}")


def start(folder, *words):
    log = open(folder / "log", "ab")
    return subprocess.Popen([BENCH, "--testlist", str(folder / "l.txt"), "--output_path",
                             str(folder / "o.csv"), *words], stdout=log, stderr=log)


def worker_of(parent):
    try:
        text = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text()
    except OSError:
        return None
    return int(text.split()[0]) if text.split() else None


def sound_lines(path):
    """Records of a journal that may end in half a line."""
    if not path.exists():
        return []
    text = path.read_text()
    return [json.loads(line) for line in text[:text.rfind("\n") + 1].split("\n") if line]


def results(path):
    return [record for record in sound_lines(path) if record["kind"] == "result"]


def expect_consistent(folder, count):
    """Each case has one finished row, and the CSV file holds what the journal holds."""
    journal = results(folder / "o.jsonl")
    read_journal(folder / "o.jsonl")
    finished = collections.Counter(r["case_index"] for r in journal if r["status"] == "PASSED")
    expect(sorted(finished) == list(range(count)), f"cases without a row: {sorted(finished)}")
    expect(max(finished.values()) == 1, f"finished cases that ran again: {finished}")
    rows = read_csv(folder / "o.csv")
    expect([(r["case_key"], r["status"]) for r in rows] ==
           [(r["case_key"], r["status"]) for r in journal], "CSV and journal differ")
    return journal


def twenty_killed_workers(folder):
    listed(folder, *cases(40))
    rng = random.Random(7)
    parent = start(folder)
    kills = 0
    while parent.poll() is None and kills < 20:
        time.sleep(rng.uniform(0.0, 0.06))
        worker = worker_of(parent.pid)
        if worker:
            os.kill(worker, signal.SIGKILL)
            kills += 1
    status = parent.wait(120)
    journal = results(folder / "o.jsonl")
    crashed = [r for r in journal if r["status"] == "CRASHED"]
    expect([r["case_index"] for r in journal] == list(range(40)), "a row for every case")
    expect(status == (5 if crashed else 0), f"status {status}, {len(crashed)} crashed")
    expect(len(crashed) <= kills, f"{len(crashed)} rows for {kills} kills")
    for record in crashed:
        expect("signal 9" in record["reason"], record["reason"])
    expect({r["status"] for r in journal} <= {"PASSED", "CRASHED"}, "statuses")
    expect_no_process(folder)
    print(f"        {kills} kills, {len(crashed)} rows CRASHED")
    parent = start(folder, "--resume")
    expect(parent.wait(120) == 0, (folder / "log").read_text()[-2000:])
    expect(len(expect_consistent(folder, 40)) == 40 + len(crashed), "only these ran again")


def twenty_killed_parents(folder):
    listed(folder, *cases(40))
    rng = random.Random(11)
    kills = 0
    for _ in range(20):
        before = len(results(folder / "o.jsonl"))
        parent = start(folder, "--resume")
        time.sleep(rng.uniform(0.0, 0.1))
        if parent.poll() is None:
            parent.kill()
            kills += 1
        parent.wait(30)
        expect_no_process(folder)
        expect(len(results(folder / "o.jsonl")) >= before, "rows were lost")
    print(f"        {kills} kills, {len(results(folder / 'o.jsonl'))} rows by then")
    parent = start(folder, "--resume")
    expect(parent.wait(120) == 0, (folder / "log").read_text()[-2000:])
    expect(len(expect_consistent(folder, 40)) == 40, "rows")


def interrupt_ends_everything(folder):
    for number in (signal.SIGINT, signal.SIGTERM):
        result = run_list(folder, [f"{SMALL} --backends fake-good"], "--force")
        expect_status(result, 0)
        listed(folder, f"{SMALL} --backends fake-good", f"{SMALL} --backends fake-sleep fake-good")
        (folder / "log").unlink(missing_ok=True)
        parent = start(folder, "--force")
        deadline = time.time() + 20
        while len(results(folder / "o.jsonl")) < 1 and time.time() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        parent.send_signal(number)
        expect(parent.wait(20) == 130, f"status {parent.returncode}")
        expect_no_process(folder)
        log = (folder / "log").read_text()
        expect("1 PASSED" in log and "exit status 130" in log, log)
        expect("--resume instead of --force" in log, log)
        expect(len(read_csv(folder / "o.csv")) == 1, "finished rows are written")


def terminal_interrupt_reaches_the_parent_alone(folder):
    """Ctrl-C goes to a process group: the worker must not be in it."""
    listed(folder, f"{SMALL} --backends fake-sleep")
    parent = start(folder)
    deadline = time.time() + 20
    while not worker_of(parent.pid) and time.time() < deadline:
        time.sleep(0.01)
    worker = worker_of(parent.pid)
    time.sleep(0.1)
    expect(os.getpgid(worker) == worker != os.getpgid(parent.pid), "process groups")
    parent.kill()
    parent.wait(10)
    expect_no_process(folder)


def resume_mends_the_files(folder):
    lines = [*cases(3), "--routine rmsnorm --batch_size x", f"{SMALL} --backends fake-refuse cpu"]
    expect_status(run_list(folder, lines), 8)
    whole = (folder / "o.jsonl").read_bytes()
    full_csv = (folder / "o.csv").read_text()
    expect_status(run_list(folder, lines, "--resume"), 8)
    expect((folder / "o.csv").read_text() == full_csv, "nothing was left to do")
    cut = whole.split(b"\n")
    # killed between the journal line and the CSV row, with half a line behind
    (folder / "o.jsonl").write_bytes(b"\n".join(cut[:3]) + b"\n" + cut[3][:100])
    (folder / "o.csv").write_text("\n".join(full_csv.split("\n")[:2]) + "\nrmsnorm,0.0")
    result = run_list(folder, lines, "--resume", "--json_path", folder / "o.json")
    expect_status(result, 8)
    expect("--resume: the journal has 2 rows, 2 of them finished" in result.out, result.out)
    journal = read_journal(folder / "o.jsonl")
    expect([r["kind"] for r in journal] == ["environment"] + ["result"] * 2 + ["environment"] +
           ["result"] * 4, str([r["kind"] for r in journal]))
    rows = read_csv(folder / "o.csv")
    expect([r["status"] for r in rows] == ["PASSED"] * 3 + ["ERROR", "UNSUPPORTED", "PASSED"],
           str(statuses(rows)))
    document = json.loads((folder / "o.json").read_text())
    expect(len(document["results"]) == 6, "the document holds the rows of both runs")
    expect(document["summary"]["PASSED"] == 4, str(document["summary"]))


def resume_runs_what_did_not_finish(folder):
    lines = [f"{SMALL} --backends cpu fake-segv fake-good", *cases(1) * 2,
             f"{SMALL} --backends fake-wrong fake-oom --also none"]
    expect_status(run_list(folder, lines), 5)
    result = run_list(folder, lines, "--resume")
    expect_status(result, 5)
    rows = read_csv(folder / "o.csv")
    count = collections.Counter((r["backend"], r["status"]) for r in rows)
    expect(count == {("cpu", "PASSED"): 3, ("fake-good", "PASSED"): 1, ("fake-segv", "CRASHED"): 2,
                     ("fake-wrong", "INCORRECT"): 1, ("fake-oom", "OOM"): 1}, str(count))
    # more of the same case: only the new one runs
    expect_status(run_list(folder, [*cases(1) * 3], "--resume"), 0)
    count = collections.Counter((r["backend"], r["status"]) for r in read_csv(folder / "o.csv"))
    expect(count[("cpu", "PASSED")] == 4, str(count))
    # without isolation the journal counts as well
    result = run_list(folder, [*cases(1) * 3], "--resume", "--no_isolation")
    expect_status(result, 0)
    expect("[PERF]" not in result.out, result.out)


def resume_refuses_what_it_cannot_trust(folder):
    words = SMALL.split()
    out = folder / "o.csv"
    expect_error(run(BENCH, *words, "--resume"), "--resume", "--output_path")
    expect_error(run(BENCH, *words, "--resume", "--output_path", "/dev/null"), "/dev/null")
    expect_error(run(BENCH, *words, "--resume", "--force", "--output_path", out), "--force",
                 "--resume", "exclude")
    expect_error(run(BENCH, *words, "--resume", "--append", "--output_path", out), "--append",
                 "--resume", "exclude")
    expect(not out.exists(), "a refused run left a file")
    expect_status(run(BENCH, *words, "--resume", "--output_path", out), 0)
    (folder / "o.jsonl").rename(folder / "elsewhere")
    expect_error(run(BENCH, *words, "--resume", "--output_path", out), "o.csv", "1 rows", "0")
    expect(len(read_csv(out)) == 1, "the CSV file was touched")
    (folder / "o.jsonl").write_text("something else\n")
    expect_error(run(BENCH, *words, "--resume", "--output_path", out), "o.jsonl", "no journal")
    lines = (folder / "elsewhere").read_text().split("\n")
    (folder / "o.jsonl").write_text(lines[0] + "\nrubbish\n" + lines[1].replace("cpu-", "abc-") +
                                    "\n")
    result = run(BENCH, *words, "--resume", "--output_path", out)
    expect_status(result, 0)
    expect("1 of its lines" in result.out and "another device" in result.out, result.out)
    expect(len(read_csv(out)) == 2, "a row of another device does not count")


def device_numbers(folder):
    words = SMALL.split()
    expect_error(run(BENCH, *words, "--devices", "3"), "--devices 3", "only 0", status=7)
    expect_error(run(BENCH, *words, "--devices", "3", "--no_isolation"), "--devices 3", status=7)
    expect_error(run(BENCH, *words, "--devices", "0,1"), "--devices 0 1", "one device")
    expect_error(run(BENCH, *words, "--devices", "-1"), "--devices", "-1")
    expect_error(run(BENCH, *words, "--devices", "x"), "--devices", "x")
    expect_status(run(BENCH, *words, "--devices", "0"), 0)


main([faults_in_the_result, faults_that_end_the_process, faults_that_hang,
      memory_that_is_gone_comes_back, a_lost_device_costs_one_row, noise_stays_off_stdout,
      stdin_is_not_the_workers, several_faults_and_both_states, introduced_once,
      same_output_without_isolation, twenty_killed_workers, twenty_killed_parents,
      interrupt_ends_everything, terminal_interrupt_reaches_the_parent_alone,
      resume_mends_the_files, resume_runs_what_did_not_finish, resume_refuses_what_it_cannot_trust,
      device_numbers])
