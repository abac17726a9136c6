#!/usr/bin/env python3
"""Prints grapheme_table.inc: the characters that are not a grapheme cluster of their own.

The argument is Unicode's GraphemeBreakProperty.txt, which Debian's package unicode-data has in
/usr/share/unicode/auxiliary: https://www.unicode.org/Public/UCD/latest/ucd/auxiliary/GraphemeBreakProperty.txt

    python3 tokenizers/detail/unicode/make_grapheme_table.py GraphemeBreakProperty.txt > tokenizers/detail/unicode/grapheme_table.inc
"""

import re
import sys
import textwrap

KINDS = {"CR": "alone", "LF": "alone", "Control": "alone", "Prepend": "leads", "Extend": "follows", "ZWJ": "follows",
         "SpacingMark": "follows"}


def main():
    ranges = []
    lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
    for line in lines:
        found = re.match(r"([0-9A-F]+)(?:\.\.([0-9A-F]+))?\s*;\s*(\w+)", line)
        if found and found[3] in KINDS:
            ranges.append((int(found[1], 16), int(found[2] or found[1], 16), KINDS[found[3]]))
    merged = []
    for first, last, kind in sorted(ranges):
        if merged and merged[-1][1] + 1 == first and merged[-1][2] == kind:
            merged[-1][1] = last
        else:
            merged.append([first, last, kind])
    items = ", ".join(f"{{{first:#x}, {last:#x}, {kind}}}" for first, last, kind in merged)
    print(f"// Written by make_grapheme_table.py of {lines[0].lstrip('# ')}.\n")
    print("inline constexpr GraphemeRange grapheme_ranges[] = {")
    print(textwrap.fill(items, width=108, initial_indent="    ", subsequent_indent="    ") + "};")


if __name__ == "__main__":
    main()
