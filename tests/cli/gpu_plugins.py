"""Plug-ins on a GPU: the example, and the cheats of tests/plugins/cheat_cuda.cu with their twins.

Usage: gpu_plugins.py FIB_BENCH    (ends with 77 where there is no GPU)
"""
import json
import os
import pathlib
import sys

from common import expect, expect_status, main, read_csv, run

BENCH = os.path.abspath(sys.argv[1])
PLUGINS = pathlib.Path(os.environ.get("FIB_TEST_PLUGINS", os.path.dirname(BENCH) + "/plugins"))
NORM = ["--routine", "rmsnorm", "--batch_size", "64", "--hidden_size", "4096", "--quick"]

DEVICE = json.loads(run(BENCH, "env", "--json").out)["device"]
if DEVICE["kind"] != "cuda":
    print(f"skipped: {DEVICE['note'] or 'built without CUDA'}")
    sys.exit(77)


def rows_of(folder, *words, status=0):
    result = run(BENCH, *words, "--output_path", folder / "o.csv", "--force")
    if status is not None:
        expect_status(result, status)
    return {row["backend"]: row for row in read_csv(folder / "o.csv")}


def example(folder):
    words = ["--plugin", PLUGINS / "example_cuda.so"]
    rows = rows_of(folder, *words, *NORM, "--backends", "cuda", "plugin:example-cuda")
    expect({row["status"] for row in rows.values()} == {"PASSED"}, str(rows))
    expect("CAPTURE_FAILED" not in rows["plugin:example-cuda"]["flags"], str(rows))
    rows = rows_of(folder, *words, "--routine", "scaled_sum", "--rows", "64", "--quick")
    row = rows["plugin:example-cuda"]
    expect(row["status"] == "PASSED" and "element_per_thread" in row["resolved_backend"], str(row))


def cheats_are_caught(folder):
    """A graph without nodes may also end as ERROR: its windows take no time."""
    for cheat, expected in [("cache", "INCORRECT"), ("aside", "INCORRECT ERROR"),
                            ("nothing", "INCORRECT"), ("pinned", "INVALID"),
                            ("later", "INCORRECT ERROR"), ("reuse", "INCORRECT")]:
        name = f"cheat-cuda-{cheat}"
        rows = rows_of(folder, *NORM, "--plugin", PLUGINS / f"{name}.so", "--backends", "cuda",
                       f"plugin:{name}", status=None if "ERROR" in expected else 4)
        row = rows[f"plugin:{name}"]
        print(f"        {cheat}: {row['status']} {row['reason']}")
        expect(row["status"] in expected.split() and row["median_time"] == "", f"{cheat}: {row}")
        expect(rows["cuda"]["status"] == "PASSED", f"{cheat}: {rows['cuda']}")
        name = f"honest-cuda-{cheat}"
        rows = rows_of(folder, *NORM, "--plugin", PLUGINS / f"{name}.so", "--backends",
                       f"plugin:{name}")
        expect(rows[f"plugin:{name}"]["status"] == "PASSED", f"{name}: {rows}")


main([example, cheats_are_caught])
