"""Shared by the command-line tests: run a program, collect failures, report like a test."""
import csv
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

ROOT = pathlib.Path(os.environ.get("FIB_SOURCE_ROOT", pathlib.Path(__file__).parents[2]))
SHARED = pathlib.Path(os.environ.get("FIB_SHARED", ROOT.parent / "shared"))


class Result:
    def __init__(self, done):
        self.status = done.returncode
        self.out = done.stdout.decode("utf-8", "replace")
        self.err = done.stderr.decode("utf-8", "replace")


def run(program, *words, cwd=None, env=None, stdin=None, timeout=600):
    done = subprocess.run([str(program), *map(str, words)], cwd=cwd, env=env, input=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
    return Result(done)


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def expect_status(result, status):
    expect(result.status == status,
           f"exit status {result.status}, expected {status}\n--- out\n{result.out[-3000:]}"
           f"\n--- err\n{result.err[-3000:]}")


def expect_error(result, *parts, status=1):
    """One line on stderr that holds every part; no usage dump; nothing on stdout."""
    expect_status(result, status)
    lines = result.err.strip().split("\n")
    expect(len(lines) == 1, f"not one line: {result.err!r}")
    for part in parts:
        expect(part in lines[0], f"{part!r} not in {lines[0]!r}")
    expect(result.out == "", f"stdout not empty: {result.out!r}")


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, strict=True))
    header = rows[0]
    expect(len(set(header)) == len(header), "a column name occurs twice")
    for row in rows[1:]:
        expect(len(row) == len(header), f"{len(row)} cells for {len(header)} columns")
    return [dict(zip(header, row)) for row in rows[1:]]


def no_constant(name):
    raise AssertionError(f"{name} in JSON")


def read_journal(path):
    lines = pathlib.Path(path).read_text(encoding="utf-8").split("\n")
    expect(lines[-1] == "", "the journal does not end with a newline")
    return [json.loads(line, parse_constant=no_constant) for line in lines[:-1]]


@functools.cache
def validator():
    """None, said once, where jsonschema is not installed."""
    try:
        import jsonschema
    except ImportError:
        print("(jsonschema is not installed: records are parsed, not validated)")
        return None
    schema = json.loads((ROOT / "docs/schema/result.schema.json").read_text())
    return jsonschema.Draft7Validator(schema)


def validate(records):
    """Every record against the schema."""
    for record in records if validator() else []:
        errors = [f"{list(e.absolute_path)}: {e.message}" for e in validator().iter_errors(record)]
        expect(not errors, "\n".join(errors[:5]) + f"\nin {json.dumps(record)[:2000]}")


class Skip(Exception):
    """What this machine lacks for a test."""


def main(tests):
    """tests: functions that take a fresh folder."""
    failed = 0
    only = os.environ.get("FIB_TEST_ONLY")
    for test in tests:
        if only and only not in test.__name__:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(pathlib.Path(folder))
                print(f"ok      {test.__name__}")
            except Skip as reason:
                print(f"skipped {test.__name__}: {reason}")
            except Exception:
                failed += 1
                print(f"FAILED  {test.__name__}")
                traceback.print_exc(limit=4, file=sys.stdout)
    sys.exit(1 if failed else 0)
