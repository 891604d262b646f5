"""Generated documents equal what the program prints; links and named files exist.

Usage: check_docs.py SOURCE_ROOT FIB_BENCH
"""
import pathlib
import re
import subprocess
import sys

root, bench = pathlib.Path(sys.argv[1]), sys.argv[2]
bad = []


def output(*words):
    return subprocess.run([bench, *words], check=True, capture_output=True, text=True).stdout


if (root / "docs/options.md").read_text() != output("list", "--flags"):
    bad.append("docs/options.md is not what `fib-bench list --flags` prints: scripts/update_docs")

readme = (root / "README.md").read_text()
table = re.search(r"<!-- table: begin -->\n(.*?)<!-- table: end -->", readme, re.S)
if "built without" in output("doctor"):
    print("README's table is not compared: this build lacks a library or CUDA")
elif not table or table.group(1) != output("list", "--markdown"):
    bad.append("the table of README.md is not what `fib-bench list --markdown` prints")

pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
for page in pages:
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if "://" not in link and not (page.parent / link).exists():
            bad.append(f"{page.relative_to(root)}: link to missing {link}")
    for name in re.findall(r"`((?:core|routines|backends|tests|scripts|docs|testlists)/[\w./]+)`", text):
        if not (root / name).exists():
            bad.append(f"{page.relative_to(root)}: names missing file {name}")

# Every built routine has its cost explained.
metrics = (root / "docs/metrics.md").read_text()
for line in output("list").split("\n"):
    words = line.split()
    name = words[0] if line.startswith("  ") and words else ""
    if name and not name.endswith(":") and "not built" not in line and name not in metrics:
        bad.append(f"docs/metrics.md does not explain the cost of {name}")

# A flag in prose must exist (flags of the reference tool that we do not take are written plain).
known = set(re.findall(r"`--([\w-]+)", (root / "docs/options.md").read_text()))
known |= {"help", "version", "family", "markdown", "models", "flags", "json", "tests", "quick"}
for page in [root / "README.md", root / "docs/metrics.md", root / "docs/differences.md"]:
    for flag in re.findall(r"`--([a-z]\w*)", page.read_text()):
        if flag not in known:
            bad.append(f"{page.relative_to(root)}: flag --{flag} does not exist")

print("\n".join(bad) or "documents agree with the program")
sys.exit(bool(bad))
