"""Backends that crash, hang and leak, killed workers, killed parents: one row each, nothing lost.

Usage: cli_faults.py FAULT_BENCH [cpu|cuda]    (cpu; cuda ends with 77 where there is no GPU)
FIB_TEST_ONLY=WORD runs only the tests with that word in their name.
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
import threading
import time

from common import expect, expect_error, expect_status, main, read_csv, read_journal, run, validate

BENCH = os.path.abspath(sys.argv[1])
DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cpu"
CUDA = DEVICE == "cuda"
GOOD = DEVICE  # label of our own backend there
if not CUDA:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the program takes a GPU where it sees one
SMALL = "--routine rmsnorm --batch_size 8 --hidden_size 512 --cache hot -n 8 -d 0"
ENDED = r"worker ended (by signal \d+ \([a-z ]+\)|with exit status \d+)"
# Enough for the sound backends of a case; loading code onto a GPU counts as well.
LIMIT_S = "1" if CUDA else "0.2"
MOST_RESTART_S = 1.5  # from an error of the GPU to the next row


def need_device():
    """Ends the test where the device is missing; says whether the build is a sanitizer's."""
    result = run(BENCH, "env", "--json")
    expect_status(result, 0)
    environment = json.loads(result.out)
    device = environment["device"]
    if device["kind"] != DEVICE:
        print(f"skipped: {device['note'] or 'built without CUDA'}")
        sys.exit(77)
    return environment["sanitizer"] != "none"


# Under ASan a fault is reported by the process itself, which then ends with a status of its own.
SANITIZED = need_device()


class Watch(threading.Thread):
    """Notes when each line of a growing file appeared, on the clock of the misdeeds' own words."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.times, self.ended = path, [], threading.Event()

    def look(self):
        lines = self.path.read_bytes().count(b"\n") if self.path.exists() else 0
        self.times += [time.monotonic()] * (lines - len(self.times))

    def run(self):
        while not self.ended.wait(0.002):
            self.look()

    def stop(self):
        self.ended.set()
        self.join()
        self.look()


def seconds_to_next_row(fault, result, records, times):
    """From a backend's misdeed to the first row of another one; None when there was none."""
    said = re.search(r"misdeed at (\d+\.\d+)", result.err)
    rows = [when for record, when in zip(records, times)
            if said and record["kind"] == "result" and record["backend"] != fault
            and when > float(said[1])]
    return rows[0] - float(said[1]) if rows else None


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


def check_neighbours(folder, fault, status, reason, *words, exit_status=5, other="fake-good"):
    """The faulty backend gets its row, its neighbours and the next case are right. Returns the
    seconds that the next row took after the fault, where the fault tells when it happened."""
    case = f"{SMALL} --backends {GOOD} {fault} {other} {' '.join(words)}"
    (folder / "o.jsonl").unlink(missing_ok=True)
    watch = Watch(folder / "o.jsonl")
    watch.start()
    result = run_list(folder, [case, SMALL], "--force")
    watch.stop()
    expect_status(result, exit_status)
    expect_no_process(folder)
    rows = read_csv(folder / "o.csv")
    expect(len(rows) == 4, f"{fault}: {statuses(rows)}")
    first, last = by_backend(rows[:3]), rows[3]
    expect(first[fault]["status"] == status, f"{fault}: {first[fault]}")
    expect(re.search(reason, first[fault]["reason"]), f"{fault}: {first[fault]['reason']}")
    expect(first[fault]["median_time"] == "", f"{fault}: a time: {first[fault]}")
    expect(first[GOOD]["status"] == first[other]["status"] == last["status"] == "PASSED",
           f"{fault}: {statuses(rows)}")
    expect(float(first[GOOD]["median_time"]) > 0, f"{fault}: no time")
    records = read_journal(folder / "o.jsonl")
    validate(records)
    sums = {r["check"]["output_checksum"] for r in records[1:] if r["status"] == "PASSED"}
    expect(len(sums) == 1, f"{fault}: output of neighbours or the next case differs: {sums}")
    seconds = seconds_to_next_row(fault, result, records, watch.times)
    if seconds is not None:
        print(f"        {' '.join([fault, *words])}: {status}, next row {seconds:.3f} s later")
    return seconds


def faults_in_the_result(folder):
    for fault, reason in [("fake-guard", "beyond|guard|past"), ("fake-wrong", ""),
                          ("fake-zeros", ""), ("fake-unwritten", "writ"), ("fake-input", "input"),
                          ("fake-later", ""), ("fake-stale", "")]:
        check_neighbours(folder, fault, "INCORRECT", reason, exit_status=4)


def faults_that_end_the_process(folder):
    for fault, how in [("fake-segv", "11"), ("fake-abort", "6"), ("fake-stack", "11"),
                       ("fake-kill", "9"), ("fake-late-segv", "11"), ("fake-early-segv", "11"),
                       *([] if CUDA else [("fake-far", "11")])]:
        end = ENDED if SANITIZED else rf"worker ended by signal {how} "
        step = ("prepared" if "early" in fault else "timed" if "late" in fault or "kill" in fault
                else "first calls")
        check_neighbours(folder, fault, "CRASHED", rf"{end}.* in {fault}, .*{step}")
    check_neighbours(folder, "fake-exit0", "CRASHED",
                     "worker ended with exit status 0 in fake-exit0, in its first calls")
    check_neighbours(folder, "fake-exit3", "CRASHED",
                     "worker ended with exit status 3 in fake-exit3, while it was timed")


def faults_that_hang(folder):
    faults = [("fake-sleep", "in its first calls"), ("fake-spin", "while it was timed")]
    if CUDA:
        faults += [("fake-loop", "in its first calls"), ("fake-late-loop", "while it was timed"),
                   ("fake-early-loop", "while it was prepared")]
    for fault, step in faults:
        check_neighbours(folder, fault, "TIMEOUT",
                         rf"still running after {LIMIT_S} s .--timeout_s.* in {fault}, {step}",
                         "--timeout_s", LIMIT_S)


def errors_of_the_gpu(folder):
    """Each leaves the GPU lost to the worker, whenever and by whomever it is noticed."""
    nowhere = "cudaErrorIllegalAddress"
    faults = {"fake-far": nowhere, "fake-early-far": nowhere, "fake-late-far": nowhere,
              "fake-misaligned": "cudaErrorMisalignedAddress", "fake-assert": "cudaErrorAssert",
              "fake-trap": "cudaError(LaunchFailure|IllegalInstruction)", "fake-deep": "cudaError"}
    seconds = {fault: check_neighbours(folder, fault, "CRASHED", reason, "--timeout_s", "10")
               for fault, reason in faults.items()}
    # calls behind the faulty one report its error as their own
    for timer in ("events", "isolated", "wall"):
        check_neighbours(folder, "fake-late-far", "CRASHED", nowhere, "--timer", timer,
                         "--cache", "cold")
    slow = {fault: wait for fault, wait in seconds.items() if wait > MOST_RESTART_S}
    expect(not slow, f"more than {MOST_RESTART_S} s until the next row: {slow}")
    print(f"        at most {max(seconds.values()):.3f} s from an error to the next row")


def a_gpu_lost_without_a_worker_ends_the_run(folder):
    result = run_list(folder, [f"{SMALL} --backends {GOOD} fake-early-far fake-good", SMALL],
                      "--force", "--no_isolation")
    expect_status(result, 7)
    expect("--no_isolation" in result.err, result.err)
    expect([row["status"] for row in read_csv(folder / "o.csv")] == ["CRASHED"] * 3, "rows")


def launches_that_the_gpu_refuses(folder):
    check_neighbours(folder, "fake-oversized", "ERROR", "cudaErrorInvalid(Configuration|Value)",
                     exit_status=8)
    check_neighbours(folder, "fake-error", "ERROR", "illegal address", exit_status=8)


def memory_of_the_gpu(folder):
    check_neighbours(folder, "fake-greedy", "OOM", "refuses a block of .* free", exit_status=0)
    check_neighbours(folder, "fake-hog", "OOM", "refuses a block of .* free", exit_status=0,
                     other="fake-needy")
    check_neighbours(folder, "fake-oom", "OOM", "99 GiB", exit_status=0)


def every_row_passes(folder, fault, *words):
    case = f"{SMALL} --backends {GOOD} {fault} fake-good {' '.join(words)}"
    result = run_list(folder, [case, SMALL], "--force")
    expect_status(result, 0)
    rows = read_csv(folder / "o.csv")
    expect([row["status"] for row in rows] == ["PASSED"] * 4, f"{fault}: {statuses(rows)}")
    return read_journal(folder / "o.jsonl")[1:]


def a_call_that_cannot_be_captured_is_timed_by_events(folder):
    records = every_row_passes(folder, "fake-waiting")
    for record in records[:3]:
        expect("CAPTURE_FAILED" in record["flags"], f"{record['backend']}: {record['flags']}")
        expect(record["measure"]["timer"] == "events", record["measure"])
    expect("CAPTURE_FAILED" not in records[3]["flags"], "the next case is captured again")
    expect(records[3]["measure"]["timer"] == "graph", records[3]["measure"])


def an_error_after_the_results_spares_the_next_case(folder):
    every_row_passes(folder, "fake-parting-far")
    every_row_passes(folder, "fake-parting-loop", "--timeout_s", LIMIT_S)


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
    result = run_list(folder, [f"{SMALL} --cache both --backends fake-segv {GOOD} fake-late-segv "
                               "fake-refuse fake-abort", SMALL])
    expect_status(result, 5)
    rows = read_csv(folder / "o.csv")
    count = collections.Counter((r["backend"], r["status"]) for r in rows[:-1])
    expect(count == {("fake-segv", "CRASHED"): 2, (GOOD, "PASSED"): 2,
                     ("fake-abort", "CRASHED"): 2, ("fake-late-segv", "CRASHED"): 2,
                     ("fake-refuse", "UNSUPPORTED"): 2}, str(count))
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

LIST_CASES = 120  # more than twenty kills leave time for
KILLS = 20


def cases(count):
    quick = " --quick" if CUDA else ""  # a GPU may warm up for much longer than 20 ms
    return [f"--routine rmsnorm --batch_size {2 + i} --hidden_size 2048 --cache hot --budget_ms 20"
            + quick for i in range(count)]


def living():
    """(number, parent's number, words) of every process that has not ended."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
        except (OSError, IndexError):
            continue
        if state != "Z":
            yield int(entry.name), int(parent), words


def processes(folder):
    """Processes of a run into this folder, parents and workers: they have the same arguments."""
    return [number for number, _, words in living() if str(folder / "o.csv").encode() in words]


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
    return next((number for number, owner, _ in living() if owner == parent), None)


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


def wait_for_rows(folder, parent, count, rng):
    """Until so many more rows are there, and then some: a worker is met at its start, in a case and
    between two. False when the parent came to its end."""
    def rows():
        path = folder / "o.jsonl"
        return path.read_bytes().count(b'"kind":"result"') if path.exists() else 0

    goal, deadline = rows() + count, time.time() + 60
    while rows() < goal and parent.poll() is None and time.time() < deadline:
        time.sleep(0.002)
    time.sleep(rng.uniform(0.0, 0.06))
    return parent.poll() is None


def twenty_killed_workers(folder):
    listed(folder, *cases(LIST_CASES))
    rng = random.Random(7)
    parent = start(folder)
    kills, worker = 0, None
    while kills < KILLS and wait_for_rows(folder, parent, kills % 4, rng):
        last, worker = worker, worker_of(parent.pid)
        if worker and worker != last:
            os.kill(worker, signal.SIGKILL)
            kills += 1
    expect(kills == KILLS, f"the list ended after {kills} kills")
    status = parent.wait(300)
    journal = results(folder / "o.jsonl")
    crashed = [r for r in journal if r["status"] == "CRASHED"]
    expect([r["case_index"] for r in journal] == list(range(LIST_CASES)), "a row for every case")
    expect(status == (5 if crashed else 0), f"status {status}, {len(crashed)} crashed")
    expect(len(crashed) <= kills, f"{len(crashed)} rows for {kills} kills")
    for record in crashed:
        expect("signal 9" in record["reason"], record["reason"])
    expect({r["status"] for r in journal} <= {"PASSED", "CRASHED"}, "statuses")
    expect_no_process(folder)
    print(f"        {kills} kills, {len(crashed)} rows CRASHED")
    parent = start(folder, "--resume")
    expect(parent.wait(120) == 0, (folder / "log").read_text()[-2000:])
    expect(len(expect_consistent(folder, LIST_CASES)) == LIST_CASES + len(crashed),
           "only these ran again")


def twenty_killed_parents(folder):
    listed(folder, *cases(LIST_CASES))
    rng = random.Random(11)
    for kill in range(KILLS):
        before = len(results(folder / "o.jsonl"))
        parent = start(folder, "--resume")
        expect(wait_for_rows(folder, parent, kill % 4, rng), f"the list ended after {kill} kills")
        parent.kill()
        parent.wait(30)
        expect_no_process(folder)
        expect(len(results(folder / "o.jsonl")) >= before, "rows were lost")
    print(f"        {KILLS} kills, {len(results(folder / 'o.jsonl'))} rows by then")
    parent = start(folder, "--resume")
    expect(parent.wait(300) == 0, (folder / "log").read_text()[-2000:])
    expect(len(expect_consistent(folder, LIST_CASES)) == LIST_CASES, "rows")


def interrupt_ends_everything(folder):
    for number in (signal.SIGINT, signal.SIGTERM):
        result = run_list(folder, [f"{SMALL} --backends fake-good"], "--force")
        expect_status(result, 0)
        listed(folder, f"{SMALL} --backends fake-good", f"{SMALL} --backends fake-sleep fake-good")
        for old in ("log", "o.jsonl", "o.csv"):
            (folder / old).unlink(missing_ok=True)
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


ANYWHERE = [faults_in_the_result, faults_that_end_the_process, faults_that_hang,
            noise_stays_off_stdout, stdin_is_not_the_workers, several_faults_and_both_states,
            twenty_killed_workers, twenty_killed_parents, interrupt_ends_everything,
            terminal_interrupt_reaches_the_parent_alone]
HOST = [memory_that_is_gone_comes_back, a_lost_device_costs_one_row, introduced_once,
        same_output_without_isolation, resume_mends_the_files, resume_runs_what_did_not_finish,
        resume_refuses_what_it_cannot_trust, device_numbers]
GPU = [errors_of_the_gpu, a_gpu_lost_without_a_worker_ends_the_run, launches_that_the_gpu_refuses,
       memory_of_the_gpu, a_call_that_cannot_be_captured_is_timed_by_events,
       an_error_after_the_results_spares_the_next_case]
main(ANYWHERE + (GPU if CUDA else HOST))
