#!/usr/bin/env python3
"""Prints class_table.inc: classes of characters for split patterns.

The facts are those of tests/data/pretrained/unicode/classes.json: what Oniguruma in Hugging Face's library `tokenizers` 0.23.3
does with every one of the 1,112,064 characters. Nothing is read from this Python's own tables, so that the output does not
depend on its version.

    python3 tokenizers/detail/unicode/make_class_table.py > tokenizers/detail/unicode/class_table.inc
"""

import json
import pathlib
import textwrap

OTHERS = {"alphabetic_beside_letters": "other_alphabetic", "uppercase_beside_Lu": "other_uppercase",
          "lowercase_beside_Ll": "other_lowercase", "word_beside_alphabetic_marks_digits_connectors": "other_word",
          "numeric_beside_numbers": "other_numeric"}


def ranges(text):
    for part in text.split():
        first, _, last = part.partition("-")
        yield int(first, 16), int(last or first, 16)


def mapping(text):
    pairs = (part.split("=") for part in text.split())
    return {int(key, 16): [int(value, 16) for value in values.split("+")] for key, values in pairs}


def array(kind, name, items):
    body = textwrap.fill(", ".join(items), width=108, initial_indent="    ", subsequent_indent="    ")
    return f"\ninline constexpr {kind} {name}[] = {{\n{body}}};"


def named_ranges(sets):
    """Those of all sets, by their first characters; each with the number of its set."""
    return [f"{{{first}, {last}, {number}}}"
            for first, last, number in sorted((*part, number) for number, text in enumerate(sets.values()) for part in ranges(text))]


def pairs(maps):
    return [f"{{{character}, {other}}}" for character, others in maps.items() for other in others]


def main():
    folder = pathlib.Path(__file__).resolve().parents[3] / "tests/data/pretrained/unicode"
    facts = json.loads((folder / "classes.json").read_text(encoding="utf-8"))
    print("// Written by make_class_table.py.")
    for kind, sets in ("categor", facts["categories"]), ("script", facts["scripts"]):
        names = kind + ("ies" if kind == "categor" else "s")
        print(array("std::string_view", names, (f'"{name}"' for name in sets)))
        print(array("NamedRange", kind + ("y_ranges" if kind == "categor" else "_ranges"), named_ranges(sets)))
    for key, name in OTHERS.items():
        print(array("CharacterRange", name, (f"{{{first}, {last}}}" for first, last in ranges(facts[key]))))
    print(array("CharacterPair", "other_cases", pairs(mapping(facts["cases"]))))
    print(array("CharacterPair", "folds", pairs(mapping(facts["folds"]))))


if __name__ == "__main__":
    main()
