#!/usr/bin/env python3
"""docs/code.py check|write: compares the code on the pages with the sources that it comes from, or copies it from there.

The line above a fenced block names its source, as a path in the repository:

    <!-- docs/project/main.cpp -->                      the whole file
    <!-- docs/snippets/guide_data.cpp [padding] -->     the part that begins after the line `// [padding]`
    <!-- docs/transcripts/guide_data.txt [padding] -->  the part that begins after the line `# padding`
    <!-- docs/transcripts/numerics.txt 9-11 -->         these lines

A part ends before the next line of that form, whatever its name. The indentation that all its lines share is removed.
tests/docs/docs_test.cpp makes the same comparison, so that the tests need no Python.
"""

import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCE = re.compile(r"<!-- (\S+)(?: \[(.+)\]| (\d+)-(\d+))? -->")
MARKER = re.compile(r" *// \[(.+)\]|# (.+)")


def lines_of(path):
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def code(line):
    """The lines of the source that a line of a page names."""
    source = SOURCE.fullmatch(line)
    if not source:
        raise ValueError("the line above a block must name its source: <!-- PATH --> or <!-- PATH [NAME] -->")
    path, name, first, last = source.groups()
    if not (ROOT / path).is_file():
        raise ValueError(f"there is no file {path}")
    lines = lines_of(ROOT / path)
    if first:
        lines = lines[int(first) - 1 : int(last)]
    elif name:
        markers = [(i, match[1] or match[2]) for i, line in enumerate(lines) if (match := MARKER.fullmatch(line))]
        begin = next((i + 1 for i, marker in markers if marker == name), None)
        if begin is None:
            raise ValueError(f"{path} has no part [{name}]")
        lines = lines[begin : next((i for i, _ in markers if i >= begin), None)]
    text = textwrap.dedent("\n".join(lines)).strip("\n")
    if not text or "```" in text:
        raise ValueError(f"{line[5:-4]} has no lines that can be shown")
    return text.split("\n")


def updated(lines):
    """The lines of a page with the code of its sources, and the errors by line number."""
    result, errors, i = [], {}, 0
    while i < len(lines):
        result.append(lines[i])
        i += 1
        if not lines[i - 1].lstrip().startswith("```"):
            continue
        end = next((j for j in range(i, len(lines)) if lines[j].strip() == "```"), None)
        if end is None:
            errors[i] = "this block has no end"
            continue
        block = lines[i:end]
        if not lines[i - 1].startswith("```{"):  # of Sphinx
            try:
                source = code(lines[i - 2])
                if block != source:
                    errors[i] = f"this block differs from {lines[i - 2][5:-4]}"
                    block = source
            except ValueError as error:
                errors[i] = str(error)
        result += [*block, lines[end]]
        i = end + 1
    return result, errors


def main():
    if sys.argv[1:] not in (["check"], ["write"]):
        sys.exit("usage: docs/code.py check|write")
    failed = False
    for page in PAGES:
        lines = lines_of(page)
        result, errors = updated(lines)
        if sys.argv[1] == "write" and result != lines:
            page.write_text("\n".join(result) + "\n", encoding="utf-8")
            _, errors = updated(result)
        for number, error in errors.items():
            print(f"{page.relative_to(ROOT)}:{number}: {error}", file=sys.stderr)
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
