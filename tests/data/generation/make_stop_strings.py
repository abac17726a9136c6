#!/usr/bin/env python3
"""Writes stop_strings.json: where transformers' StopStringCriteria ends texts of the tokenizers beside it.

    python3 make_stop_strings.py ../pretrained/tokenizers > stop_strings.json  # of some; or their names

Needs transformers 5.24.0 and torch. `ends` of a case is whether the last of `ids` completes one of `strings`.
"""
import json
import pathlib
import random
import sys

import torch
from transformers import PreTrainedTokenizerFast
from transformers.generation.stopping_criteria import StopStringCriteria

TEXTS = ["the cat sat on the mat.", "naïve café 猫😀 it's", "It's 2024, isn't it?\n\nYes  ", "def f(x):\n\treturn x+1"]
CASES = 60


def part_of_end(text):
    """A few characters at the end of a text, or near it."""
    length = random.randint(1, 5)
    begin = max(0, len(text) - length - random.choice([0, 0, 0, 1, 2]))
    return text[begin : begin + length].replace("\ufffd", "") or random.choice(["e", "x", "."])


def ids_of_text(tokenizer, number):
    vocabulary = sorted(tokenizer.get_vocab().values())
    ids = [random.choice(vocabulary) for _ in range(random.randint(1, 6))]
    if number % 2:
        text = tokenizer(random.choice(TEXTS), add_special_tokens=False)["input_ids"]
        ids = text[: random.randint(1, len(text))] or ids
    if random.random() < 0.1:
        ids.append(vocabulary[-1] + 7)  # the id of no token
    return ids


def cases_of(folder):
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    cases = []
    for number in range(CASES):
        ids = ids_of_text(tokenizer, number)
        text = tokenizer.decode(ids, skip_special_tokens=False)
        strings = [part_of_end(text) for _ in range(random.randint(1, 2))]
        ends = StopStringCriteria(tokenizer, strings)(torch.tensor([ids]), None)
        cases.append({"ids": ids, "strings": strings, "ends": bool(ends[0])})
    return cases


random.seed(5)
root = pathlib.Path(sys.argv[1])
folders = sys.argv[2:] or ["falcon", "gpt2", "llama2", "llama3", "xlm_roberta_reranker"]
print("{")
print(",\n".join(
    f'"{name}": [\n' + ",\n".join(json.dumps(case) for case in cases_of(root / name)) + "\n]" for name in folders
))
print("}")
