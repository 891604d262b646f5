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


# Labels and the table of backends are as a build with all libraries has them.
lacking = "built without" in output("doctor")


def comparable(page):
    return re.sub(r"## Backend labels\n.*?\n## ", "## ", page, flags=re.S) if lacking else page


if comparable((root / "docs/options.md").read_text()) != comparable(output("list", "--flags")):
    bad.append("docs/options.md is not what `fib-bench list --flags` prints: scripts/update_docs")

readme = (root / "README.md").read_text()
table = re.search(r"<!-- table: begin -->\n(.*?)<!-- table: end -->", readme, re.S)
if lacking:
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

# A flag in prose must exist (flags of the reference tool that we do not take are written plain).
known = set(re.findall(r"`--([\w-]+)", (root / "docs/options.md").read_text()))
known |= {"help", "version", "family", "markdown", "models", "flags", "json", "tests", "quick"}
for page in [root / "README.md", root / "docs/metrics.md", root / "docs/differences.md"]:
    for flag in re.findall(r"`--([a-z]\w*)", page.read_text()):
        if flag not in known:
            bad.append(f"{page.relative_to(root)}: flag --{flag} does not exist")

print("\n".join(bad) or "documents agree with the program")
sys.exit(bool(bad))
