"""Sizes and lists that the style guide promises, kept by a machine.

Usage: check_style.py SOURCE_ROOT
"""
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(sys.argv[1])
FOLDERS = ["core", "gpu", "routines", "backends", "tests", "include"]
MAX_COLUMNS, MAX_FILE_LINES, MAX_FUNCTION_LINES, MEDIAN_FUNCTION_LINES = 100, 800, 60, 20


def sources():
    files = [ROOT / "flashinfer_bench.c"]
    for folder in FOLDERS:
        files += sorted((ROOT / folder).rglob("*.[ch]"))
    return [f for f in files if "vendor" not in f.parts]


def functions(lines):
    """(name, length) of each function: from its first line to the brace in column 0."""
    start = None
    for number, line in enumerate(lines):
        if line == "{":
            first = number
            while first > 0 and lines[first - 1] and lines[first - 1][0] not in "}/*;#":
                first -= 1
            start = first
        elif line == "}" and start is not None:
            yield lines[start], number - start + 1
            start = None


def main():
    bad, lengths = [], []
    for path in sources():
        name = path.relative_to(ROOT)
        lines = path.read_text().split("\n")
        if len(lines) > MAX_FILE_LINES:
            bad.append(f"{name}: {len(lines)} lines, at most {MAX_FILE_LINES}")
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_COLUMNS:
                bad.append(f"{name}:{number}: {len(line)} columns")
            if "\t" in line or line != line.rstrip():
                bad.append(f"{name}:{number}: tab or blank at the end")
        for signature, length in functions(lines):
            if path.parts[len(ROOT.parts)] != "tests":
                lengths.append(length)
            if length > MAX_FUNCTION_LINES:
                bad.append(f"{name}: {length} lines: {signature}")
    if statistics.median(lengths) > MEDIAN_FUNCTION_LINES:
        bad.append(f"median function has {statistics.median(lengths)} lines")
    listed = "".join(f.read_text() for f in ROOT.rglob("meson.build") if "build" not in f.parts[:-1])
    stems = [p.name for p in sources() if p.suffix == ".c"]
    for name in stems:
        stem = name[:-2]
        short = stem[5:] if stem.startswith("test_") else stem
        if not re.search(rf"'(\w+/)?({re.escape(name)}|{re.escape(stem)}|{re.escape(short)})'", listed):
            bad.append(f"{name}: in no meson.build")
    for name in set(stems):
        if stems.count(name) > 1:
            bad.append(f"{name}: the same name twice in the tree")
    print("\n".join(bad) or f"{len(lengths)} functions, median {statistics.median(lengths)} lines")
    sys.exit(bool(bad))


main()
