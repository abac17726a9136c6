#!/usr/bin/env python3
"""Writes how PyTorch prints tensors, as tests/graph/print_test.cpp expects xgrad to print them: make_cases.py FOLDER

The cases beside this file were made with PyTorch 2.13.0. Types are named without "torch.".
"""

import json
import math
import pathlib
import sys

import torch
from torch import _tensor_str

NAN, INF = math.nan, math.inf
cases = []


def add(name, tensor, graph="", **options):
    """`graph` is what ends the line for a tensor that takes part in differentiation."""
    torch.set_printoptions(profile="default", **options)
    suffixes = []
    kind = str(tensor.dtype).removeprefix("torch.")
    if tensor.numel() == 0:
        if tensor.dim() != 1:
            suffixes.append("size=" + str(tuple(tensor.shape)))
        if kind != "float32":
            suffixes.append("dtype=" + kind)
        text = "[]"
    else:
        if kind == "float64":
            suffixes.append("dtype=" + kind)
        text = _tensor_str._tensor_str(tensor, len("tensor("))
    if graph:
        suffixes.append(graph)
    text = _tensor_str._add_suffixes("tensor(" + text, suffixes, len("tensor("), force_newline=False)
    if not graph and kind != "float64":
        assert text == str(tensor).replace("torch.", ""), (text, str(tensor))
    values = [str(v) if isinstance(v, float) and not math.isfinite(v) else v for v in tensor.flatten().tolist()]
    cases.append(
        {"name": name, "dtype": kind, "shape": list(tensor.shape), "values": values, "options": options, "graph": graph, "text": text}
    )


def randn(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype)


torch.manual_seed(1)
for rank, shape in enumerate([(), (3,), (2, 3), (2, 2, 3), (2, 1, 2, 3), (1, 2, 2, 1, 2), (1, 1, 1, 1, 1, 2)]):
    add(f"rank{rank}", randn(*shape))
    add(f"rank{rank}_float64", randn(*shape, dtype=torch.float64))
    add(f"rank{rank}_int64", torch.randint(-50, 1000, shape))
    add(f"rank{rank}_bool", torch.rand(shape) < 0.5)
    add(f"rank{rank}_leaf", randn(*shape), "requires_grad=True")
    add(f"rank{rank}_result", randn(*shape), "grad_fn=<scaled_dot_product_attention>")
for shape in [(0,), (0, 3), (2, 0, 4)]:
    add(f"empty_{len(shape)}", torch.zeros(shape))
    add(f"empty_{len(shape)}_float64", torch.zeros(shape, dtype=torch.float64), "requires_grad=True")
    add(f"empty_{len(shape)}_int64", torch.zeros(shape, dtype=torch.int64))
    add(f"empty_{len(shape)}_bool", torch.zeros(shape, dtype=torch.bool))
for count in (1, 7, 8, 9, 10, 24, 60):
    add(f"line_{count}", randn(count))
    add(f"line_{count}_float64", randn(count, dtype=torch.float64), "requires_grad=True")
    add(f"line_{count}_whole", torch.arange(count, dtype=torch.float32), "grad_fn=<add>")
    add(f"rows_of_{count}", randn(2, count), "grad_fn=<linear>")
for name, values in {
    "whole": [1, 2, -3],
    "whole_wide_range": [1, 1001],
    "whole_range_1000": [1, 1000, 0],
    "whole_large": [2e8, 3e8],
    "whole_1e8": [1e8, 1e8],
    "range_1000": [0.5, 500.0],
    "range_above_1000": [0.5, 500.5],
    "tiny": [0.5, 0.00009],
    "just_not_tiny": [0.05, 0.0001],
    "all_tiny": [1e-5, -2e-7, 0],
    "huge": [1.5e10, -2.25e12],
    "extreme": [3.4e38, 1e-45],
    "zeros": [0, -0.0],
    "zeros_and_nan": [0, NAN, -INF],
    "only_nan": [NAN],
    "only_inf": [INF, -INF],
    "nan_among_numbers": [1.5, NAN, -INF, INF],
    "nan_among_whole": [1, NAN, -20, INF],
    "nan_among_large": [1.5e10, NAN, -INF],
    "rounding": [0.00005, 0.12345, 0.12335, 2.99999],
    "negative_zero_after_rounding": [-0.00012, 0.1],
}.items():
    for kind in (torch.float32, torch.float64):
        add(f"{name}_{kind}".replace("torch.", ""), torch.tensor(values, dtype=kind))
    add(f"{name}_never_scientific", torch.tensor(values, dtype=torch.float32), sci_mode=False)
    add(f"{name}_scientific", torch.tensor(values, dtype=torch.float32), sci_mode=True)
add("int64_limits", torch.tensor([-(2**63), 2**63 - 1, 0]))
for shape in [(1000,), (1001,), (10, 101), (101, 10), (7, 6, 30), (3, 7, 8, 9), (2, 501)]:
    name = "x".join(map(str, shape))
    add(f"many_{name}", torch.arange(math.prod(shape)).reshape(shape) / 8, "grad_fn=<reshape>")
    add(f"many_{name}_int64", torch.arange(math.prod(shape)).reshape(shape))
    add(f"many_{name}_bool", torch.arange(math.prod(shape)).reshape(shape) % 3 == 0)
wide = torch.ones(1200)
wide[600] = 1e-9
add("hidden_range", wide)
wide[1] = 1e-9
add("shown_range", wide)
add("precision_2", randn(3, 4), precision=2)
add("precision_0", randn(3, 4), precision=0)
add("precision_8_float64", randn(3, 4, dtype=torch.float64), precision=8)
add("edgeitems_1", torch.arange(40.0).reshape(4, 10) / 3, threshold=10, edgeitems=1)
add("edgeitems_2", torch.arange(60).reshape(3, 4, 5), threshold=10, edgeitems=2)
add("linewidth_40", randn(2, 9), "grad_fn=<matmul>", linewidth=40)
add("linewidth_5", randn(2, 3), linewidth=5)

path = pathlib.Path(sys.argv[1]) / "cases.json"
path.write_text("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")
