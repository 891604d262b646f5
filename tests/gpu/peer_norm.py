"""rmsnorm and fused_add_rmsnorm of public libraries beside fib-bench, alternating in one run.

Needs PyTorch; FlashInfer and quack are used where they import. Each library is timed like a graph
window of fib-bench: N calls in one CUDA graph over copies of the tensors that together pass three
times the L2, or, where that would be too many copies, every copy once per replay with the L2
filled with other lines before it, outside the timed interval.

Usage: peer_norm.py FIB_BENCH LIST [--passes 5] [--out FILE] [--match REGEX] [--flags "..."]
One pass times the whole list with fib-bench, then with every library; medians of the passes are
compared. Output: one JSON object a line and routine, and a table on stdout.
"""
import argparse
import json
import math
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F

EPS = 1e-6
# Every shape is compiled for itself: with the usual limit the ninth would run uncompiled.
torch._dynamo.config.recompile_limit = 100000
torch._dynamo.config.accumulated_recompile_limit = 100000
COLD_BYTES = 3 * torch.cuda.get_device_properties(0).L2_cache_size
MOST_COPIES = 1024
WINDOWS = 12


def optional(name):
    try:
        module = __import__(name, fromlist=["x"])
        print(f"{name}: {getattr(module, '__version__', 'found')}", file=sys.stderr)
        return module
    except Exception as error:  # a library that is missing is one column less
        print(f"{name}: {type(error).__name__}: {error}"[:200], file=sys.stderr)
        return None


class Timed:
    """A library's calls on one shape, captured once and replayed in every pass."""

    def __init__(self, calls, flush):
        self.flush = flush
        self.count = len(calls)
        self.calls = calls  # they own the tensors that the graph reads
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for call in calls[:3]:
                call()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        rounds = 1
        with torch.cuda.graph(self.graph):
            for call in calls:
                call()
        if not flush:  # long windows, so that the launch of a graph does not count
            rounds = max(1, math.ceil(1000.0 / max(self.window_us(None), 1.0)))
        self.rounds = rounds

    def window_us(self, junk, rounds=1):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if junk is not None:
            junk.max()
        start.record()
        for _ in range(rounds):
            self.graph.replay()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e3

    def median_us(self, junk):
        flush = junk if self.flush else None
        for _ in range(3):
            self.window_us(flush, self.rounds)
        windows = [self.window_us(flush, self.rounds) for _ in range(WINDOWS)]
        return statistics.median(windows) / (self.count * self.rounds)


def rms_calls(libraries, rows, cols, copies):
    x = torch.randn(copies, rows, cols, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    w = torch.randn(copies, cols, device="cuda", dtype=torch.bfloat16)  # cold like the rest
    made = {}
    fi, quack = libraries["flashinfer"], libraries["quack"]
    if fi:
        made["flashinfer"] = [lambda i=i: fi.rmsnorm(x[i], w[i], EPS, out=y[i]) for i in range(copies)]
    compiled = torch.compile(lambda t, v: F.rms_norm(t, (cols,), v, EPS), dynamic=False)
    made["torch.compile"] = [lambda i=i: compiled(x[i], w[i]) for i in range(copies)]
    if quack:
        made["quack"] = [lambda i=i: quack.rmsnorm_fwd(x[i], w[i], eps=EPS) for i in range(copies)]
    return made


def add_calls(libraries, rows, cols, copies):
    x = torch.randn(copies, rows, cols, device="cuda", dtype=torch.bfloat16)
    r = torch.randn_like(x)
    w = torch.randn(copies, cols, device="cuda", dtype=torch.bfloat16)  # cold like the rest
    made = {}
    fi, quack = libraries["flashinfer"], libraries["quack"]

    def fused(a, b, v):
        s = a + b
        return F.rms_norm(s, (cols,), v, EPS), s
    compiled = torch.compile(fused, dynamic=False)
    made["torch.compile"] = [lambda i=i: compiled(x[i], r[i], w[i]) for i in range(copies)]
    if quack:
        made["quack"] = [lambda i=i: quack.rmsnorm_fwd(x[i], w[i], residual=r[i], eps=EPS)
                         for i in range(copies)]
    if fi:  # last: it works in place
        made["flashinfer"] = [lambda i=i: fi.fused_add_rmsnorm(x[i], r[i], w[i], EPS)
                              for i in range(copies)]
    return made


MAKERS = {"rmsnorm": (rms_calls, 2), "fused_add_rmsnorm": (add_calls, 4)}


def shape_of(line):
    words = shlex.split(line)
    flags = dict(zip(words[::2], words[1::2]))
    if flags.get("--input_dtype", "bfloat16") != "bfloat16" or "--num_heads" in flags:
        return None
    routine = flags.get("--routine")
    if routine not in MAKERS:
        return None
    return routine, int(flags["--batch_size"]), int(flags["--hidden_size"])


def capture(libraries, routine, rows, cols):
    maker, tensors = MAKERS[routine]
    footprint = (tensors * rows + 1) * cols * 2
    wanted = max(2, math.ceil(COLD_BYTES / footprint) + 1)
    copies = min(wanted, MOST_COPIES)
    timed = {}
    for name, calls in maker(libraries, rows, cols, copies).items():
        try:
            timed[name] = Timed(calls, wanted > copies)
        except Exception as error:
            print(f"{routine} {rows}x{cols} {name}: {type(error).__name__}: {error}"[:200],
                  file=sys.stderr)
            torch.cuda.synchronize()
    return timed


def fib_pass(program, lines, folder, number, flags):
    path = os.path.join(folder, "lines.txt")
    out = os.path.join(folder, f"pass{number}.csv")
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    subprocess.run([program, "--testlist", path, "--output_path", out, "--backends", "cuda",
                    "--quiet", *flags], check=False, stdout=subprocess.DEVNULL)
    medians = {}
    for text in open(out.replace(".csv", ".jsonl")):
        record = json.loads(text)
        if record.get("kind") == "result" and record["time"]:
            key = (record["routine"], record["params"]["batch_size"],
                   record["params"]["hidden_size"])
            medians[key] = record["time"]["median"] / 1e6
    return medians


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("list")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--out")
    parser.add_argument("--match", default=".")
    parser.add_argument("--flags", default="", help="more flags for fib-bench, as one word")
    options = parser.parse_args()
    libraries = {"flashinfer": optional("flashinfer"), "quack": optional("quack.rmsnorm")}
    lines = [line.strip() for line in open(options.list)
             if line.strip() and line[0] != "#" and re.search(options.match, line)
             and shape_of(line.strip())]
    shapes = [shape_of(line) for line in lines]
    timed = {shape: capture(libraries, *shape) for shape in shapes}
    junk = torch.zeros(COLD_BYTES, dtype=torch.int8, device="cuda")
    seen = {shape: {} for shape in shapes}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.passes):
            for shape, us in fib_pass(options.program, lines, folder, number,
                                      shlex.split(options.flags)).items():
                seen[shape].setdefault("fib-bench", []).append(us)
            for shape in shapes:
                for name, one in timed[shape].items():
                    seen[shape].setdefault(name, []).append(one.median_us(junk))
    out = open(options.out, "w") if options.out else None
    print(f"{'routine':20}{'shape':>14}{'fib-bench':>11}  best peer                 ratio")
    behind = 0
    for shape in shapes:
        medians = {name: statistics.median(values) for name, values in seen[shape].items()}
        ours = medians.get("fib-bench", float("nan"))
        peers = {name: us for name, us in medians.items() if name != "fib-bench"}
        best = min(peers, key=peers.get) if peers else "-"
        ratio = ours / peers[best] if peers else float("nan")
        behind += ratio > 1.01
        print(f"{shape[0]:20}{shape[1]:>7}x{shape[2]:<6}{ours:>11.3f}  {best:15}"
              f"{peers.get(best, float('nan')):>9.3f} {ratio:>7.3f}{'  behind' if ratio > 1.01 else ''}")
        if out:
            out.write(json.dumps({"routine": shape[0], "rows": shape[1], "cols": shape[2],
                                  "us": medians, "passes": seen[shape]}) + "\n")
    print(f"{len(shapes)} shapes, {behind} behind by more than 1 %")


if __name__ == "__main__":
    main()
