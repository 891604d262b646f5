"""Output of the program with the fake device against files: byte for byte, on every machine, with a
worker process and without.

Usage: golden.py FAKE_BENCH [--update]
"""
import os
import pathlib
import sys
import tempfile

from common import expect, run

FAKE = os.path.abspath(sys.argv[1])
FOLDER = pathlib.Path(__file__).parent / "golden"
SMALL = ["--batch_size", "4", "--hidden_size", "64", "-n", "24"]

LIST = """\
# a list with everything
--routine rmsnorm --batch_size 4 --hidden_size 64 --backends fake-good -n 24 --case_tag "one, two"

--routine rmsnorm --batch_size x --hidden_size 64
--routine rmsnom --batch_size 4 --hidden_size 64
--routine rmsnorm --batch_size 1,2 --hidden_size 64 --backends fake-wrong fake-slow fake-good -n 24
--routine apply_rope --batch_size 2 --seq_len 4 --num_qo_heads 2 --num_kv_heads 2 --head_dim 64
--routine rmsnorm --batch_size 4 --hidden_size 64 --backends 'fake-good
--routine mm_bf16 --m 4 --n 16 --k 32 --backends fake-good cutlass -n 24
"""

CASES = {
    "one_backend": ["--routine", "rmsnorm", *SMALL, "--backends", "fake-good"],
    "one_backend_table": ["--routine", "rmsnorm", *SMALL, "--backends", "fake-good", "--table"],
    "two_backends": ["--routine", "rmsnorm", *SMALL, "--backends", "fake-slow", "fake-good",
                     "cutlass"],
    "verbose": ["--routine", "fused_add_rmsnorm", *SMALL, "--backends", "fake-good", "-vv",
                "--generate_repro_command", "--case_tag", "a 'quoted' tag"],
    "wrong": ["--routine", "rmsnorm", *SMALL, "--backends", "fake-wrong", "fake-good"],
    "adaptive": ["--routine", "rmsnorm", "--batch_size", "4", "--hidden_size", "64", "--backends",
                 "fake-good"],
    "three_arms": ["--routine", "rmsnorm", *SMALL, "--backends", "fake-good", "fake-slow",
                   "fake-later", "--table"],
    "list": ["--testlist", "cases.txt", "--output_path", "out.csv", "--json_path", "out.json"],
    "plan": ["--routine", "rmsnorm", "--batch_size", "1:64:*4", "--hidden_size", "64,128",
             "--plan", "--backends", "fake-good", "fake-slow"],
    "help_routine": ["--routine", "rmsnorm", "--help"],
    "describe": ["describe", "mm_bf16"],
}


def capture(words):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "cases.txt").write_text(LIST)
        result = run(FAKE, *words, cwd=folder)
        text = f"$ fib-bench {' '.join(words)}\n{result.out}--- stderr\n{result.err}"
        text += f"--- exit {result.status}\n"
        for path in sorted(folder.glob("out.csv")):
            text += f"--- {path.name}\n{path.read_text()}"
        for path in sorted(folder.glob("out.jsonl")):
            # the environment block differs from machine to machine
            rows = [line for line in path.read_text().splitlines()
                    if '"kind":"environment"' not in line]
            text += f"--- {path.name}\n" + "\n".join(rows) + "\n"
        return text


def main():
    failed = []
    for name, words in CASES.items():
        path = FOLDER / f"{name}.txt"
        got = capture(words)
        expect(got == capture(words), f"{name}: two runs differ")
        if words[0].startswith("--") and "--help" not in words:
            plain = capture([*words, "--no_isolation"]).replace(" --no_isolation\n", "\n", 1)
            expect(got == plain, f"{name}: the output depends on the worker:\n{got}\n{plain}")
        if "--update" in sys.argv:
            path.write_text(got)
        elif not path.exists() or path.read_text() != got:
            failed.append(name)
            want = path.read_text().splitlines() if path.exists() else []
            have = got.splitlines()
            for number in range(max(len(want), len(have))):
                a = want[number] if number < len(want) else "(nothing)"
                b = have[number] if number < len(have) else "(nothing)"
                if a != b:
                    print(f"{name}:{number + 1}:\n  expected {a}\n  got      {b}")
                    break
    print(f"{len(CASES) - len(failed)} of {len(CASES)} as expected")
    sys.exit(bool(failed))


main()
