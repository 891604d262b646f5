"""Bad input: one clear line, the exit status, and nothing lost.

Usage: cli_errors.py FIB_BENCH FAKE_BENCH
"""
import os
import pathlib
import sys

from common import expect, expect_error, expect_status, main, read_csv, run

BENCH, FAKE = map(os.path.abspath, sys.argv[1:3])
NORM = ["--routine", "rmsnorm", "--batch_size", "2", "--hidden_size", "64", "--quick"]


def flags(*words, **options):
    return run(BENCH, *words, **options)


def names(folder):
    expect_error(flags("--routine", "rmsnom"), "rmsnom", "rmsnorm")
    expect_error(flags("--routine", "rmsnorm", "--hiden_size", "64"), "--hiden_size",
                 "--hidden_size")
    expect_error(flags("lst"), "lst", "list")
    expect_error(flags("describe", "rmsnom"), "rmsnom", "rmsnorm")
    expect_error(flags("describe"), "describe")
    expect_error(flags("list", "--family", "nrm"), "nrm", "norm")
    expect_error(flags("list", "--bogus"), "--bogus")
    expect_error(flags("env", "x"), "x")
    expect_error(flags("doctor", "x"), "x")
    expect_error(flags(*NORM, "--backends", "fa9"), "fa9", "fa")
    expect_error(flags(*NORM, "--model", "lama-3.1-8b"), "lama-3.1-8b", "llama-3.1-8b")


def numbers(folder):
    for text in ["0", "-1", "1.5", "99999999999999999999", "x", "", "1e3", "0x10", "1:0", "1:8:*1",
                 "1:1000000000", "1,,2"]:
        expect_error(flags("--routine", "rmsnorm", f"--batch_size={text}", "--hidden_size", "64"),
                     "--batch_size")
    for text in ["nan", "inf", "x", "-1"]:
        expect_error(flags(*NORM, f"--eps={text}"), "--eps")
    expect_error(flags(*NORM, "-n", "0"), "--num_iters", "0")
    expect_error(flags(*NORM, "--budget_ms", "0"), "--budget_ms")
    expect_error(flags("--routine", "mm_bf16", "--m", "2147483647", "--n", "2147483647", "--k",
                       "2147483647"), "--m")


def required(folder):
    expect_error(flags("--routine", "rmsnorm", "--batch_size", "2"), "--hidden_size", "required")
    expect_error(flags("--batch_size", "2"), "--routine")
    expect_error(flags("--routine", "mm_bf16", "--m", "2", "--n", "3"), "--k", "required")
    expect_error(flags(*NORM, "--hidden_size"), "--hidden_size")


def values(folder):
    expect_error(flags(*NORM, "--input_dtype", "bfloat17"), "--input_dtype", "bfloat17", "bfloat16")
    expect_error(flags(*NORM, "--cache", "warm"), "--cache", "warm", "cold")
    expect_error(flags("--routine", "layernorm_quant", "--batch_size", "2", "--hidden_size", "64",
                       "--input_dtype", "float16"), "--input_dtype", "float16", "bfloat16")
    expect_error(flags("--routine", "rmsnorm_quant", "--batch_size", "2", "--hidden_size", "64",
                       "--out_dtype", "nvfp4"), "--out_dtype", "nvfp4")
    expect_error(flags(*NORM, "--quick", "--precise"), "--quick", "--precise")
    expect_error(flags(*NORM, "stray"), "stray")


def case_53_attention_shapes(folder):
    decode = ["--routine", "BatchDecodeWithPagedKVCacheWrapper", "--batch_size", "2", "--s_kv", "64",
              "--num_qo_heads", "8", "--num_kv_heads", "2", "--head_dim_qk", "128"]
    paged = [*decode, "--page_size", "16"]
    expect_error(flags(*decode), "--page_size")
    expect_error(flags(*decode, "--page_size", "0"), "--page_size", "0")
    expect_error(flags(*decode, "--page_size", "-1"), "--page_size", "-1")
    expect_error(flags(*paged, "--num_kv_heads", "0"), "--num_kv_heads", "0")
    expect_error(flags(*paged, "--num_qo_heads", "7"), "--num_qo_heads", "7", "--num_kv_heads")
    expect_error(flags(*paged, "--head_dim_qk", "0"), "--head_dim_qk", "0")
    expect_error(flags(*paged, "--s_qo", "128", "--s_kv", "2"), "--s_qo")
    expect_error(flags(*paged, "--backends", "fa9"), "fa9")
    expect_error(flags(*paged, "--num_iter5", "3"), "--num_iter5", "--num_iters")
    ragged = flags("--routine", "BatchPrefillWithRaggedKVCacheWrapper", "--batch_size", "2",
                   "--s_qo", "64", "--s_kv", "64", "--num_qo_heads", "8", "--num_kv_heads", "2",
                   "--head_dim_qk", "128")
    expect_status(ragged, 2)
    expect("not" in ragged.out and "WARNING" in ragged.out, ragged.out)


def case_31_zero_tokens(folder):
    expect_error(flags("--routine", "rmsnorm", "--batch_size", "0", "--hidden_size", "4096"),
                 "--batch_size 0", "1 ..")


def outputs(folder):
    there = folder / "there.csv"
    there.write_text("kept")
    expect_error(flags(*NORM, "--output_path", there), "there.csv", "--force")
    expect(there.read_text() == "kept", "an existing file was changed")
    expect_error(flags(*NORM, "--output_path", folder / "no/such/x.csv"), "no/such")
    expect_error(flags(*NORM, "--output_path", folder), str(folder))
    expect_error(flags(*NORM, "--json_path", there), "there.csv", "--force")
    expect_status(flags(*NORM, "--output_path", there, "--force"), 0)
    expect(len(read_csv(there)) == 1, "one row")
    expect_status(flags(*NORM, "--output_path", there, "--append"), 0)
    expect(len(read_csv(there)) == 2, "two rows after --append")
    if os.geteuid() != 0:
        (folder / "locked").mkdir(mode=0o500)
        expect_error(flags(*NORM, "--output_path", folder / "locked/x.csv"), "locked")
    full = flags(*NORM, "--output_path", "/dev/full")
    expect(full.status in (1, 7) and "/dev/full" in full.err, f"{full.status} {full.err}")
    full = flags(*NORM, "--json_path", "/dev/full")
    expect(full.status in (1, 7) and "/dev/full" in full.err, f"{full.status} {full.err}")
    bad = run("sh", "-c", f"'{BENCH}' list >/dev/full")
    expect(bad.status == 7 and bad.err, f"{bad.status} {bad.err}")


def lists(folder):
    def listed(content, *words):
        path = folder / "list.txt"
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)
        csv_path = folder / "out.csv"
        result = flags("--testlist", path, "--output_path", csv_path, "--force", *words)
        return result, read_csv(csv_path) if csv_path.exists() else []

    good = "--routine rmsnorm --batch_size 2 --hidden_size 64 --quick\n"
    expect_error(flags("--testlist", folder / "none.txt"), "none.txt")
    expect_error(flags("--testlist", folder), str(folder))
    (folder / "empty.txt").write_text("")
    expect_error(flags("--testlist", folder / "empty.txt"), "empty.txt")
    expect_error(flags("--testlist", folder / "empty.txt", "--batch_size", "3"), "--batch_size")
    for bad, part in [("--routine rmsnorm --batch_size x --hidden_size 64", "--batch_size"),
                      ("--routine rmsnom", "rmsnorm"), ("--routine rmsnorm 'open", "quote"),
                      ("--routine rmsnorm --help", "help"), ("rubbish", "--routine"),
                      ("--routine rmsnorm --batch_size 2 --hidden_size 64 --backends fa9", "fa9"),
                      ("--routine rmsnorm --case_tag " + "x" * (2 << 20), "long"),
                      ("--routine rmsnorm\0 --batch_size 2", "NUL")]:
        result, rows = listed(good + bad + "\n" + good)
        expect_status(result, 8)
        expect([row["status"] for row in rows] == ["PASSED", "ERROR", "PASSED"],
               f"{bad[:60]!r}: {[row['status'] for row in rows]}")
        expect("list.txt:2: " in rows[1]["reason"] and part in rows[1]["reason"],
               rows[1]["reason"][:300])
        expect("list.txt:2: " in result.err, result.err[:300])
    result, rows = listed(("# c\r\n\r\n\t" + good.strip() + "\r\n" + good.strip() +
                           " --case_tag 'a # b'").encode("utf-8-sig"))
    expect_status(result, 0)
    expect(len(rows) == 2 and rows[1]["case_tag"] == "a # b", str(rows))
    result, rows = listed("".join(f"--routine rmsnom{i}\n" for i in range(30)))
    expect(result.status in (2, 8), f"{result.status}")
    expect(len(rows) == 30, "a row for every bad line")
    result, rows = listed(bytes(range(256)) * 64)
    expect(result.status != 0 and result.status < 128, f"binary list: {result.status}")


def case_54_exit_status_of_a_list(folder):
    path = folder / "l.txt"
    good = "--routine rmsnorm --batch_size 2 --hidden_size 64 --quick"
    path.write_text(f"{good}\n--routine rmsnorm --batch_size x --hidden_size 4096\n{good}")
    result = flags("--testlist", path, "--output_path", folder / "o.csv")
    expect_status(result, 8)
    rows = read_csv(folder / "o.csv")
    expect([row["status"] for row in rows] == ["PASSED", "ERROR", "PASSED"], str(rows))
    expect("exit status 8" in result.out, result.out)


def nothing_measured(folder):
    expect_status(flags(*NORM, "--backends", "cuda", "--also", "none"), 2)
    expect_status(flags(*NORM, "--only", "batch_size > 5"), 2)
    expect_error(flags(*NORM, "--only", "batch_size >"), "--only")
    expect_error(flags(*NORM, "--only", "bogus == 1"), "bogus")


def too_large(folder):
    huge = flags("--routine", "rmsnorm", "--batch_size", "1048576", "--hidden_size", "1048576",
                 "--max_case_s", "1000000", "--output_path", folder / "o.csv")
    expect_status(huge, 2)
    row = read_csv(folder / "o.csv")[0]
    expect(row["status"] == "OOM" and "GiB" in row["reason"] or "TiB" in row["reason"], str(row))
    slow = flags("--routine", "mm_bf16", "--m", "30000", "--n", "30000", "--k", "30000",
                 "--output_path", folder / "p.csv")
    expect_status(slow, 2)
    row = read_csv(folder / "p.csv")[0]
    expect(row["status"] == "TOO_SLOW" and "--max_case_s" in row["reason"], str(row))


def wrong_results(folder):
    small = ["--routine", "rmsnorm", "--batch_size", "4", "--hidden_size", "64", "-n", "20"]
    result = run(FAKE, *small, "--backends", "fake-wrong", "--output_path", folder / "w.csv")
    expect_status(result, 4)
    row = read_csv(folder / "w.csv")[0]
    expect(row["status"] == "INCORRECT" and row["median_time"] == "", str(row))
    result = run(FAKE, *small, "--backends", "fake-wrong", "--allow_output_mismatch",
                 "--output_path", folder / "v.csv")
    expect_status(result, 0)
    row = read_csv(folder / "v.csv")[0]
    expect(row["status"] == "INCORRECT" and float(row["median_time"]) > 0, str(row))


def one_line_each(folder):
    hostile = flags("--routine", "rms\nnorm\x1b[31m")
    expect_error(hostile, "rms")
    expect("\x1b" not in hostile.err, "a control code reached the terminal")
    expect_status(flags(), 1)


main([names, numbers, required, values, case_53_attention_shapes, case_31_zero_tokens, outputs,
      lists, case_54_exit_status_of_a_list, nothing_measured, too_large, wrong_results,
      one_line_each])
