"""The norm routines of public libraries beside fib-bench, alternating in one run.

Needs PyTorch; FlashInfer and quack are used where they import. Each library is timed like a graph
window of fib-bench: N calls in one CUDA graph over copies of all tensors (inputs, weights, outputs)
that together pass three times the L2, or, where that would be too many copies, every copy once per
replay with the L2 filled with other lines before it, outside the timed interval. What a library
returns is kept until the end of the capture: else the allocator would give every call the same
output, which then never leaves the cache.

Usage: peer_norm.py FIB_BENCH LIST [--passes 5] [--out FILE] [--match REGEX] [--flags "..."] [--pdl]
The list is worked off in groups of cases. A pass times a group with fib-bench, then with every
library; medians of the passes are compared. Output: one JSON object a case, and a table on stdout.
"""
import argparse
import functools
import gc
import json
import math
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F

EPS = 1e-6
# Every shape is compiled for itself: with the usual limit the ninth would run uncompiled.
torch._dynamo.config.recompile_limit = 100000
torch._dynamo.config.accumulated_recompile_limit = 100000
COLD_BYTES = 3 * torch.cuda.get_device_properties(0).L2_cache_size
MOST_COPIES = 1024
WINDOWS = 12
GROUP_BYTES = 50 << 30  # of tensors that live at the same time, and
GROUP_CASES = 48
FP8 = torch.float8_e4m3fn
FP8_MAX = torch.finfo(FP8).max


def optional(name):
    try:
        module = __import__(name, fromlist=["x"])
        print(f"{name}: {getattr(module, '__version__', 'found')}", file=sys.stderr)
        return module
    except Exception as error:  # a library that is missing is one column less
        print(f"{name}: {type(error).__name__}: {error}"[:200], file=sys.stderr)
        return None


class Case:
    """A line of the list as these libraries see it."""

    def __init__(self, line):
        flags, words = {}, shlex.split(line)
        for at, word in enumerate(words):
            if word.startswith("--"):
                flags[word[2:]] = words[at + 1] if at + 1 < len(words) else ""
        self.line = line
        self.routine = flags["routine"]
        heads = flags.get("num_heads")
        self.shape = tuple(int(n) for n in (flags["batch_size"], heads, flags["hidden_size"]) if n)
        self.dtype = getattr(torch, flags.get("input_dtype", "bfloat16"))
        self.scale = float(flags.get("scale", "1"))
        self.gemma = float("gemma" in self.routine)
        self.adds = "add" in self.routine
        self.layer = "layernorm" in self.routine
        self.quant = self.routine.endswith("_quant")
        size = torch.empty(0, dtype=self.dtype).element_size()
        count = math.prod(self.shape)
        out_size = 1 if self.quant else size
        moved = (1 + 2 * self.adds) * size + out_size
        self.footprint = count * ((1 + self.adds) * size + out_size * (self.quant or not self.adds))
        self.footprint += self.shape[-1] * (8 if self.layer else size)
        self.bytes = count * moved + self.shape[-1] * (8 if self.layer else size)
        self.wanted = max(2, math.ceil(COLD_BYTES / self.footprint) + 1)
        self.copies = min(self.wanted, MOST_COPIES)
        self.held = self.copies * self.footprint * 4  # inputs and the outputs of three libraries

    def key(self):
        return self.routine, self.shape, str(self.dtype).split(".")[1]


class Timed:
    """A library's calls on one case, captured once and replayed in every pass."""

    def __init__(self, calls, flush):
        self.flush = flush
        self.count = len(calls)
        self.calls = calls  # they own the tensors that the graph reads
        self.kept = []
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for call in calls[:3]:
                call()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.kept = [call() for call in calls]
        self.rounds = 1
        if not flush:  # long windows, so that the launch of a graph does not count
            self.rounds = max(1, math.ceil(1000.0 / max(self.window_us(None), 1.0)))

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


def random(case, *shape, dtype=None):
    return torch.randn(*shape, device="cuda", dtype=dtype or case.dtype)


def clamped(value, scale):
    return (value / scale).clamp(-FP8_MAX, FP8_MAX).to(FP8)


def torch_function(case):
    """The routine as plain PyTorch, for torch.compile."""
    cols, scale = (case.shape[-1],), case.scale

    def plain(x, w):
        return F.rms_norm(x, cols, w + case.gemma if case.gemma else w, EPS)

    def rms(x, w):
        return clamped(plain(x, w).float(), scale) if case.quant else plain(x, w)

    def rms_add(x, r, w):
        h = x + r
        return rms(h, w), h

    def layer(x, gamma, beta):
        y = F.layer_norm(x.float(), cols, gamma, beta, EPS).bfloat16()
        return clamped((y.float() / scale).bfloat16().float(), 1.0)
    return torch.compile(layer if case.layer else rms_add if case.adds else rms, dynamic=False)


def flashinfer_calls(fi, case, pdl, x, r, w, beta, y):
    if case.layer:
        scale = torch.full((1,), case.scale, device="cuda")
        return [lambda i=i: fi.norm.layernorm_quant(y[i], x[i], w[i], beta[i], scale, EPS, enable_pdl=pdl)
                for i in range(case.copies)]
    name = re.sub("^gemma_(fused_add_)?", r"gemma_\1", case.routine)
    function = getattr(fi.norm, name)
    if case.quant:
        scale = torch.full((1,), case.scale, device="cuda")
        lead = (lambda i: (y[i], x[i], r[i], w[i])) if case.adds else (lambda i: (y[i], x[i], w[i]))
        return [lambda a=lead(i): function(*a, scale, EPS, enable_pdl=pdl) for i in range(case.copies)]
    if case.adds:
        return [lambda a=(x[i], r[i], w[i]): function(*a, EPS, enable_pdl=pdl)
                for i in range(case.copies)]
    return [lambda a=(x[i], w[i]), o=y[i]: function(*a, EPS, out=o, enable_pdl=pdl)
            for i in range(case.copies)]


def calls_of(libraries, case, pdl):
    """Calls of each library. FlashInfer's come last: it adds in place."""
    n, cols = case.copies, case.shape[-1]
    x = random(case, n, *case.shape)
    r = random(case, n, *case.shape) if case.adds else None
    w = random(case, n, cols, dtype=torch.float32 if case.layer else None)
    beta = random(case, n, cols, dtype=torch.float32) if case.layer else None
    inputs = [(x[i], *((r[i],) if case.adds else ()), w[i], *((beta[i],) if case.layer else ()))
              for i in range(n)]
    made, fi, quack = {}, libraries["flashinfer"], libraries["quack"]
    if libraries["torch"]:
        compiled = torch_function(case)
        made["torch.compile"] = [lambda a=a: compiled(*a) for a in inputs]
    if quack and not case.quant:
        forward = functools.partial(quack.rmsnorm_fwd, eps=EPS, weight_offset=case.gemma)
        rows = x.reshape(n, -1, cols)  # it knows no heads with a common weight
        made["quack"] = [lambda i=i: forward(rows[i], w[i], residual=r[i] if case.adds else None)[:2]
                         for i in range(n)]
    if fi:
        y = None
        if case.quant or not case.adds:
            y = torch.empty(x.shape, device="cuda", dtype=FP8 if case.quant else case.dtype)
        made["flashinfer"] = flashinfer_calls(fi, case, pdl, x, r, w, beta, y)
    return made


def capture(libraries, case, pdl):
    timed = {}
    for name, calls in calls_of(libraries, case, pdl).items():
        try:
            timed[name] = Timed(calls, case.wanted > case.copies)
        except Exception as error:
            print(f"{case.line} {name}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
            torch.cuda.synchronize()
    return timed


def compile_only(libraries, cases, pdl):
    """One call of everything, so that the compilers' caches on disk are filled."""
    for case in cases:
        case.copies = 2
        try:
            for calls in calls_of(libraries, case, pdl).values():
                calls[0]()
            torch.cuda.synchronize()
        except Exception as error:
            print(f"{case.line}: {type(error).__name__}: {error}"[:300], file=sys.stderr)


def fill_caches(jobs):
    """The same program on parts of the list: compilers use one core each."""
    parts = [subprocess.Popen([sys.executable, *sys.argv, "--part", f"{i}/{jobs}"],
                              stdout=subprocess.DEVNULL) for i in range(jobs)]
    for part in parts:
        part.wait()


def groups_of(cases):
    group, held = [], 0
    for case in cases:
        if group and (held + case.held > GROUP_BYTES or len(group) == GROUP_CASES):
            yield group
            group, held = [], 0
        group.append(case)
        held += case.held
    if group:
        yield group


def fib_pass(options, group, folder):
    path, out = os.path.join(folder, "lines.txt"), os.path.join(folder, "pass.csv")
    with open(path, "w") as file:
        file.write("\n".join(case.line for case in group) + "\n")
    subprocess.run([options.program, "--testlist", path, "--output_path", out, "--backends", "cuda",
                    "--quiet", "--force", *(["--enable_pdl"] if options.pdl else []),
                    *shlex.split(options.flags)], check=False, stdout=subprocess.DEVNULL)
    medians = {}
    for text in open(out.replace(".csv", ".jsonl")):
        record = json.loads(text)
        if record.get("kind") == "result" and record["time"]:
            medians[record["line"]] = (record["time"]["median"] / 1e6, record["resolved_backend"])
    return medians


def time_group(options, libraries, group, junk, folder):
    timed = [capture(libraries, case, options.pdl) for case in group]
    seen, ran = [{} for _ in group], [""] * len(group)
    for _ in range(options.passes):
        for line, (us, resolved) in fib_pass(options, group, folder).items():
            seen[line - 1].setdefault("fib-bench", []).append(us)
            ran[line - 1] = resolved
        for at, libraries_timed in enumerate(timed):
            for name, one in libraries_timed.items():
                seen[at].setdefault(name, []).append(one.median_us(junk))
    return zip(group, seen, ran)


def report(case, seen, ran, out):
    medians = {name: statistics.median(values) for name, values in seen.items()}
    ours = medians.get("fib-bench", math.nan)
    peers = {name: us for name, us in medians.items() if name != "fib-bench"}
    best = min(peers, key=peers.get) if peers else "-"
    ratio = ours / peers[best] if peers else math.nan
    shape = "x".join(map(str, case.shape))
    print(f"{case.routine:24}{shape:>14} {case.key()[2]:9}{ours:>9.3f} {case.bytes / ours * 1e-6:6.2f}  "
          f"{best:14}{peers.get(best, math.nan):>9.3f} {ratio:>6.3f}"
          f"{'  behind' if not ratio <= 1.01 else '':8} {ran}", flush=True)
    if out:
        out.write(json.dumps({"routine": case.routine, "shape": case.shape, "dtype": case.key()[2],
                              "ran": ran, "us": medians, "passes": seen}) + "\n")
        out.flush()
    return not ratio <= 1.01


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("list")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--out")
    parser.add_argument("--match", default=".")
    parser.add_argument("--skip", help="leave out lines that match REGEX")
    parser.add_argument("--libraries", default="torch,flashinfer,quack")
    parser.add_argument("--flags", default="", help="more flags for fib-bench, as one word")
    parser.add_argument("--pdl", action="store_true", help="dependent launches where there are any")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) - 2))
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    wanted = options.libraries.split(",")
    libraries = {name: optional(module) if name in wanted else None
                 for name, module in (("torch", "torch"), ("flashinfer", "flashinfer"),
                                      ("quack", "quack.rmsnorm"))}
    cases = [Case(line.strip()) for line in open(options.list)
             if line.strip() and line[0] != "#" and re.search(options.match, line)
             and not (options.skip and re.search(options.skip, line))]
    if options.part:
        part, parts = map(int, options.part.split("/"))
        return compile_only(libraries, cases[part::parts], options.pdl)
    start = time.time()
    fill_caches(options.jobs)
    print(f"compiled in {time.time() - start:.0f} s", file=sys.stderr)
    junk = torch.zeros(COLD_BYTES, dtype=torch.int8, device="cuda")
    out = open(options.out, "w") if options.out else None
    behind = count = 0
    print(f"{'routine':24}{'shape':>14} {'dtype':9}{'fib us':>9} {'TB/s':>6}  best peer{'':>14} ratio")
    with tempfile.TemporaryDirectory() as folder:
        for group in groups_of(cases):
            for case, seen, ran in time_group(options, libraries, group, junk, folder):
                behind += report(case, seen, ran, out)
                count += 1
            gc.collect()
            torch.cuda.empty_cache()
    print(f"{count} cases, {behind} behind by more than 1 %; {time.time() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
