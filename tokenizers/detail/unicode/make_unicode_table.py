#!/usr/bin/env python3
"""Prints unicode_table.inc: what the tokenizer has to know of each character.

The facts are what Hugging Face's library `tokenizers` 0.23.3 does to every one of the 1,112,064 characters, as
tests/data/pretrained/unicode/{sweep,patterns,normalization}.json hold it: categories of Unicode 8.0 for BERT's rules, newer ones
for GPT-2's pattern, and the decompositions that it knows. Nothing is read from this Python's own tables, so that the
output does not depend on its version. Hangul syllables are decomposed by a rule and are not in the table.

    python3 tokenizers/detail/unicode/make_unicode_table.py > tokenizers/detail/unicode/unicode_table.inc
"""

import json
import pathlib
import textwrap

CHARACTERS = 0x110000
FLAGS = ["removed", "space", "punctuation", "mark", "chinese", "letter", "number", "word", "decomposes",
         "combining"]
DOTTED_I = 0x130  # the only character whose lower case has two; unicode.hpp knows the second


def read(name):
    folder = pathlib.Path(__file__).resolve().parents[3] / "tests/data/pretrained/unicode"
    return json.loads((folder / name).read_text(encoding="utf-8"))


def members(ranges):
    for part in ranges.split():
        first, _, last = part.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)


def mapping(text):
    pairs = (part.split("=") for part in text.split())
    return {int(key, 16): [int(value, 16) for value in values.split("+")] for key, values in pairs}


def records():
    """For each character its flags, its canonical combining class and how far away its lower case is."""
    sweep, patterns = read("sweep.json"), read("patterns.json")
    decompositions = mapping(patterns["decompositions"])
    sets = {
        "removed": sweep["removed"],
        "space": sweep["split_at_spaces_by_pre_tokenizer"],
        "punctuation": sweep["punctuation"],
        "mark": sweep["strip_accents_removes"],
        "chinese": sweep["chinese"],
        "letter": patterns["letters"],
        "number": patterns["numbers"],
        "word": patterns["words"],
        "combining": read("normalization.json")["combining"],
    }
    flags, classes, lower = [0] * CHARACTERS, [0] * CHARACTERS, [0] * CHARACTERS
    for bit, name in enumerate(FLAGS):
        for character in members(sets[name]) if name in sets else decompositions:
            flags[character] |= 1 << bit
    for combining_class, ranges in patterns["combining_classes"].items():
        for character in members(ranges):
            classes[character] = int(combining_class)
    for character, lowered in mapping(sweep["lowercase_maps"]).items():
        assert len(lowered) == (2 if character == DOTTED_I else 1)
        lower[character] = lowered[0] - character
    return list(zip(flags, classes, lower)), decompositions


def compositions(decompositions):
    """(first, second, composed) for each pair that NFC composes."""
    otherwise = set(members(read("normalization.json")["composed_otherwise"]))
    composed = {tuple(parts): character for character, parts in decompositions.items() if character not in otherwise}
    pairs = []
    for parts, character in composed.items():
        first = parts[0] if len(parts) == 2 else composed[parts[:-1]]
        pairs.append((first, parts[-1], character))
    return sorted(pairs)


def two_stages(items, size):
    """The distinct blocks of `size` items, and the number of each block."""
    numbers, blocks = {}, []
    for start in range(0, len(items), size):
        block = tuple(items[start : start + size])
        blocks.append(numbers.setdefault(block, len(numbers)))
    return blocks, [item for block in numbers for item in block]


def array(kind, name, values):
    body = textwrap.fill(", ".join(map(str, values)), width=108, initial_indent="    ", subsequent_indent="    ")
    return f"inline constexpr {kind} {name}[] = {{\n{body}}};\n"


def print_map(keys, starts, values, texts):
    """A map from characters to texts, as three arrays."""
    places, text = [], []
    for character in sorted(texts):
        places.append(len(text))
        text += texts[character]
    print(array("char32_t", keys, sorted(texts)))
    print(array("std::uint16_t", starts, [*places, len(text)]))
    print(array("char32_t", values, text))


def main():
    items, decompositions = records()
    numbers = {}
    kinds = [numbers.setdefault(item, len(numbers)) for item in items]
    bits = min(range(4, 10), key=lambda bits: sum(map(len, two_stages(kinds, 1 << bits))))
    blocks, rows = two_stages(kinds, 1 << bits)
    assert len(numbers) <= 1 << 16 and max(blocks) < 1 << 16
    print("// Written by make_unicode_table.py.\n")
    for bit, name in enumerate(FLAGS):
        print(f"inline constexpr std::uint16_t {name} = {1 << bit};")
    print(f"\ninline constexpr int block_bits = {bits};\n")
    print(array("Properties", "properties", (f"{{{f}, {c}, {lower}}}" for f, c, lower in numbers)))
    print(array("std::uint16_t", "blocks", blocks))
    print(array("std::uint16_t", "rows", rows))
    print_map("decomposing", "decomposition_starts", "decompositions", decompositions)
    compatibilities = mapping(read("normalization.json")["compatibility"])
    print_map("compatible", "compatibility_starts", "compatibilities", compatibilities)
    pairs = (f"{{{first}, {second}, {composed}}}" for first, second, composed in compositions(decompositions))
    print(array("Composition", "compositions", pairs), end="")


if __name__ == "__main__":
    main()
