#!/usr/bin/env python3
"""Draws what tests/base/random_test.cpp compares with PyTorch, many times: make_cases.py FOLDER

The cases beside this file have the same format and were made by PyTorch 1.13.1; 2.13 draws the same in them. This script
makes many more, without a tolerance, as PyTorch and the tests then have one C library.
"""

import itertools
import json
import pathlib
import random
import struct
import sys

import numpy
import torch
from torch import nn

folder = pathlib.Path(sys.argv[1])

SEEDS = [0, 1, 2, 3, 5, 7, 42, 123, 1234, 2023, 65537, 819740201, 2**31 - 1, 2**31, 2**32 - 1, 2**32 + 5, 2**63 + 11, 2**64 - 1]
SIZES = [0, 1, 2, 3, 8, 15, 16, 17, 31, 32, 33, 100, 1000]
INTERVALS = [(-0.5, 0.5), (-0.37, 1.9), (0, 3), (1000, 1001), (2, 2), (-1e-3, 1e6), (4095.9, 4096.1)]
NORMALS = [(0, 0.02), (0.25, 0.02), (-3, 2), (1e4, 1e-3), (5, 0)]
RANGES = [(0, 1), (0, 20), (-5, 7), (0, 2**28 - 1), (0, 2**28), (-(2**30), 2**30), (0, 2**32 - 1), (0, 2**32), (-7, 2**33), (-(2**63), 2**63 - 1)]
PROBABILITIES = [0, 0.1, 0.3, 0.5, 2 / 3, 0.9, 1]
RATES = [1, 0.3, 1e-3, 1e6]
FLOATS = ["float32", "float64"]


def seed(number):
    torch.manual_seed(number - 2**64 if number >= 2**63 else number)


def raw32(count):
    """The engine's next numbers."""
    pairs = torch.empty((count + 1) // 2, dtype=torch.int64).random_(-(2**63), None).numpy().view(numpy.uint64)
    return numpy.stack([pairs >> 32, pairs & (2**32 - 1)], 1).astype(numpy.int64).reshape(-1)[:count]


class Encoder(nn.Module):
    """The modules of a ToyEncoder, in its order, under its names."""

    def __init__(self, a, dtype):
        super().__init__()
        d, kind = a["d_model"], {"dtype": dtype}
        self.token_embedding = nn.Embedding(a["vocab_size"], d, padding_idx=a["pad_id"], **kind)
        self.position_embedding = nn.ModuleDict({"pos_embedding": nn.Embedding(a["max_len"], d, **kind)})
        self.encoder = nn.ModuleDict({"layers": nn.ModuleList(self.layer(a, kind) for _ in range(a["layers"]))})
        if a["norm_first"]:
            self.encoder["norm"] = nn.LayerNorm(d, **kind)
        self.token_head = nn.Linear(d, a["vocab_size"], **kind)
        self.class_head = nn.Linear(d, a["classes"], **kind)

    @staticmethod
    def layer(a, kind):
        d, d_ff = a["d_model"], a["d_ff"]
        projections = {name: nn.Linear(d, d, bias=a["bias"], **kind) for name in ("W_Q", "W_K", "W_V", "out_proj")}
        inner = {"linear1": nn.Linear(d, d_ff, **kind), "linear2": nn.Linear(d_ff, d, **kind)}
        norms = {name: nn.LayerNorm(d, **kind) for name in ("norm1", "norm2")}
        return nn.ModuleDict({"self_attn": nn.ModuleDict(projections), "feed_forward": nn.ModuleDict(inner), **norms})


def probabilities(shape, dtype):
    """0, 1/16, ..., 1, 0, ... in row-major order."""
    return (torch.arange(numpy.prod(shape, dtype=int)) % 17 / 16).to(dtype).reshape(shape)


DRAWS = {
    "rand": lambda a, shape, dtype: torch.rand(shape, dtype=dtype),
    "randn": lambda a, shape, dtype: torch.randn(shape, dtype=dtype),
    "uniform_": lambda a, shape, dtype: torch.empty(shape, dtype=dtype).uniform_(a["low"], a["high"]),
    "normal_": lambda a, shape, dtype: torch.empty(shape, dtype=dtype).normal_(a["mean"], a["std"]),
    "bernoulli_": lambda a, shape, dtype: torch.empty(shape, dtype=dtype).bernoulli_(a["p"]),
    "bernoulli": lambda a, shape, dtype: torch.bernoulli(probabilities(shape, dtype)),
    "exponential_": lambda a, shape, dtype: torch.empty(shape, dtype=dtype).exponential_(a["rate"]),
    "multinomial": lambda a, shape, dtype: torch.multinomial(probabilities(shape, dtype), a["num_samples"], a["replacement"]),
    "dropout_ones": lambda a, shape, dtype: nn.functional.dropout(torch.ones(shape, dtype=dtype), a["p"]),
    "randint": lambda a, shape, dtype: torch.randint(a["low"], a["high"], shape),
    "randperm": lambda a, shape, dtype: torch.randperm(shape[0])[:: a.get("stride", 1)],
}
MODULES = {
    "nn.Embedding": lambda a, dtype: nn.Embedding(a["num_embeddings"], a["embedding_dim"], a.get("padding_idx"), dtype=dtype),
    "nn.Linear": lambda a, dtype: nn.Linear(a["in_features"], a["out_features"], a["bias"], dtype=dtype),
    "ToyEncoder": Encoder,
}
counter = itertools.count()


def save(tensor):
    name = f"{next(counter)}.npy"
    numpy.save(folder / name, tensor.detach().numpy())
    return name


def made(call):
    """The call with the files of what it draws."""
    op, dtype = call["op"], getattr(torch, call["dtype"])
    if op in MODULES:
        return call | {"files": {name: save(w) for name, w in MODULES[op](call, dtype).state_dict().items()}, "abs_tol": 0}
    return call | {"file": save(DRAWS[op](call, call["shape"], dtype)), "abs_tol": 0}


def draws_until(number, state):
    """How many numbers the engine draws from the seed to this state."""
    torch.set_rng_state(state)
    wanted = raw32(4)
    seed(number)
    before, words, piece = 0, raw32(1 << 16), 1 << 24
    while True:
        for place in numpy.flatnonzero(words[:-3] == wanted[0]):
            if (words[place : place + 4] == wanted).all():
                return before + int(place)
        before += len(words) - 3
        words = numpy.concatenate([words[-3:], raw32(piece)])


def cached_normal(state):
    """normal_y, if normal_is_valid, of CPUGeneratorImplStateLegacy."""
    value, valid = struct.unpack_from("=d8xi", bytes(state.tolist()), 5024)
    return value if valid else None


def sequence(name, number, calls):
    seed(number)
    calls = [made(call) for call in calls]
    state = torch.get_rng_state()
    final = {"engine_draws_32bit": draws_until(number, state), "cached_normal": cached_normal(state)}
    return {"name": name, "seed": number, "calls": calls, "final": final}


def kinds():
    """All calls that draw an array, without their shape."""
    for dtype in FLOATS:
        yield from ({"op": op, "dtype": dtype} for op in ("rand", "randn"))
        yield from ({"op": "uniform_", "dtype": dtype, "low": low, "high": high} for low, high in INTERVALS)
        yield from ({"op": "normal_", "dtype": dtype, "mean": mean, "std": std} for mean, std in NORMALS)
        yield from ({"op": op, "dtype": dtype, "p": p} for op in ("bernoulli_", "dropout_ones") for p in PROBABILITIES)
        yield {"op": "bernoulli", "dtype": dtype}
        yield from ({"op": "exponential_", "dtype": dtype, "rate": rate} for rate in RATES)
    yield from ({"op": "randint", "dtype": "int64", "low": low, "high": high} for low, high in RANGES)
    yield {"op": "randperm", "dtype": "int64"}


chosen = random.Random(1)


def any_call():
    if chosen.random() < 0.9:
        size = chosen.choice(SIZES)
        call = chosen.choice(list(kinds()))
        return call | {"shape": [size] if call["op"] == "randperm" else chosen.choice([[size], [size, 1], [2, size], [1, size, 3]])}
    some = lambda most: chosen.randint(1, most)
    call = {"op": chosen.choice(list(MODULES)), "dtype": chosen.choice(FLOATS)}
    if call["op"] == "nn.Linear":
        return call | {"in_features": some(300), "out_features": some(40), "bias": chosen.random() < 0.5}
    if call["op"] == "nn.Embedding":
        rows = some(60)
        return call | {"num_embeddings": rows, "embedding_dim": some(40)} | chosen.choice([{}, {"padding_idx": some(rows) - 1}])
    sizes = {"d_model": 2 * some(8), "heads": 2, "d_ff": some(40), "layers": some(3), "vocab_size": some(30), "max_len": some(20)}
    return call | sizes | {"classes": some(5), "pad_id": 0, "bias": chosen.random() < 0.5, "norm_first": chosen.random() < 0.5}


def samples():
    """Up to all of the 37 of 40 weights that are not zero."""
    for dtype, replacement, rows, count in itertools.product(FLOATS, [False, True], [[], [3]], [1, 2, 37]):
        yield {"op": "multinomial", "dtype": dtype, "replacement": replacement, "num_samples": count, "shape": [*rows, 40]}


sequences = [
    sequence(" ".join(map(str, kind.values())) + f", seed {number}", number, [kind | {"shape": [size]} for size in SIZES])
    for number in SEEDS
    for kind in kinds()
]
sequences += [sequence(f"multinomial, seed {number}", number, list(samples())) for number in SEEDS]
for program in range(250):
    number = chosen.choice([chosen.getrandbits(64), chosen.choice(SEEDS)])
    sequences.append(sequence(f"program {program}", number, [any_call() for _ in range(25)]))
# From this length on, of 64-bit numbers; a part of it tells.
sequences.append(sequence("long randperm", 5, [{"op": "randperm", "dtype": "int64", "shape": [2**32 // 20], "stride": 1000003}]))
made_by = {"produced_by": f"PyTorch {torch.__version__}", "sequences": sequences}
(folder / "expected.json").write_text(json.dumps(made_by) + "\n")
print(f"{made_by['produced_by']}: {len(sequences)} sequences, {sum(len(s['calls']) for s in sequences)} calls, {next(counter)} arrays")
