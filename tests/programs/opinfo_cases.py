#!/usr/bin/env python3
"""Writes conformance cases of PyTorch's OpInfo samples: opinfo_cases.py ARCHIVE.tar.xz

The cases have the format of tests/data/conformance_format.md, and tests/data/numerics.md says which ops take what. Needs
PyTorch 1.13.1. On one processor it writes the same bytes every time; on another, LAPACK may round differently.
"""

import ast
import hashlib
import io
import itertools
import json
import lzma
import math
import random
import sys
import tarfile
import types
import unittest
import warnings

import numpy
import torch
import torch.nn.functional as F

# what its test helpers import, without the package
sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase, ACCEPT=False)
import torch.testing._internal.opinfo.core as opinfo  # noqa: E402

opinfo.M, opinfo.L = 6, 6  # the lengths of axes, which are 10 and 20
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

TYPES = {torch.float32: ("float32", "f32", 1.3e-6, 1e-5), torch.float64: ("float64", "f64", 1e-9, 1e-11)}
GONE = {("linalg.det", "singular")}  # since PyTorch 2
MOST_ELEMENTS = 150  # of all inputs of a case, and of an output
MOST_SCALE = 1e4  # of a tolerance: above it a case tells nothing


def first(y):
    return y[0]


class Op:
    """An op of the cases, and how a sample of PyTorch calls it.

    `parameters` are those of PyTorch's function, in its order: `name` is an input, `name=default` an attribute. `order` is that
    of the inputs of a case, where it differs.
    """

    def __init__(self, name, parameters, source=None, call=None, outputs=None, wanted=None, graph=None, limit=5, variant="",
                 values=(), order=None):
        self.name, self.call, self.outputs = name, call, outputs or (lambda y: y)
        self.wanted, self.graph, self.limit, self.values = wanted or (lambda x, a: True), graph, limit, values
        self.source, self.variant = source or name, variant
        self.kind = graph.__name__ if graph else variant.removeprefix(name + "_")
        self.is_smooth = not values and name not in ("fmod", "sort", "topk", "max", "min", "argmax", "one_hot")
        self.info = next((o for o in op_db if (o.name, o.variant_test_name) == (self.source, variant)), None)
        if self.info is None and (self.source, variant) not in GONE:
            raise ValueError(f"the database has no {self.source} {variant}")
        self.order, self.defaults = [], {}
        for parameter in parameters.split():
            parameter, is_attribute, default = parameter.partition("=")
            self.order.append(parameter)
            if is_attribute:
                self.defaults[parameter] = ast.literal_eval(default)
        self.inputs = order.split() if order else [name for name in self.order if name not in self.defaults]

    def arguments(self, sample):
        """The inputs by their names, and the attributes; None if the sample has others."""
        given = dict(zip(self.order, [sample.input, *sample.args]), **sample.kwargs)
        if len(sample.args) >= len(self.order) or not set(given) <= set(self.order):
            return None
        inputs = {name: only(given.get(name)) for name in self.inputs}
        attributes = {name: given.get(name, default) for name, default in self.defaults.items()}
        if any(not isinstance(x, (torch.Tensor, type(None))) for x in inputs.values()):
            return None
        return (inputs, attributes) if all(is_json(plain(a)) for a in attributes.values()) else None

    def results(self, inputs, attributes):
        if self.call:
            y = self.call(inputs, attributes)
        else:
            given = {name: inputs[name] if name in inputs else attributes[name] for name in self.order[1:]}
            y = self.info.op(inputs[self.order[0]], **{name: a for name, a in given.items() if a is not None})
        y = self.outputs(y)
        return list(y) if isinstance(y, (tuple, list)) else [y]


def only(x):
    """The item of a list of one, as indices are given."""
    return x[0] if isinstance(x, (tuple, list)) and len(x) == 1 else x


def plain(value):
    """An attribute as JSON has it."""
    if isinstance(value, (tuple, list, torch.Size)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def is_json(value):
    return all(map(is_json, value)) if isinstance(value, list) else isinstance(value, (bool, int, float, str, type(None)))


def node(op, inputs, outputs, **attributes):
    return {"op": op, "in": inputs.split(), "attrs": attributes, "out": outputs.split()}


def eigenvalues(attributes):
    return [node("eigh", "x0", "w V", **attributes)], "w"


def function_of_matrix(attributes):
    """V tanh(w) V^T, which does not depend on the signs of eigenvectors."""
    return [node("eigh", "x0", "w V", **attributes), node("tanh", "w", "t"), node("unsqueeze", "t", "row", dim=-2),
            node("mul", "V row", "scaled"), node("transpose", "V", "V_T", dim0=-2, dim1=-1),
            node("matmul", "scaled V_T", "y")], "y"


def singular_values(attributes):
    return [node("svd", "x0", "U S Vh", **attributes)], "S"


def tanh_of_singular_values(attributes):
    """U tanh(S) Vh, which does not depend on the signs of singular vectors."""
    return [node("svd", "x0", "U S Vh", **attributes), node("tanh", "S", "t"), node("unsqueeze", "t", "row", dim=-2),
            node("mul", "U row", "scaled"), node("matmul", "scaled Vh", "y")], "y"


def spans(attributes):
    """U U^T: an orthogonal matrix of all columns gives the identity."""
    return [node("svd", "x0", "U S Vh", **attributes), node("transpose", "U", "U_T", dim0=-2, dim1=-1),
            node("matmul", "U U_T", "y")], "y"


def of_eigh(f):
    return lambda x, a: f(*torch.linalg.eigh(x["input"], a["UPLO"]))


def of_svd(f):
    return lambda x, a: f(*torch.linalg.svd(x["input"], a["full_matrices"]))


def reduced(y):
    return y.values, y.indices


def std(x, a):
    return torch.std(x["input"], dim=a["dim"], correction=a["correction"], keepdim=a["keepdim"])


def is_defined_index_put(x, a):
    """With ids; PyTorch leaves undefined which of several values is put at one place."""
    ids = x["indices"]
    return ids.dtype == torch.int64 and (a["accumulate"] or ids.unique().numel() == ids.numel())


def has_plain_std(x, a):
    """Not with torch.std(x, unbiased), nor with PyTorch's default said as None."""
    return not isinstance(a["dim"], bool) and a["correction"] is not None


def function(name):
    """A function of a number, which is also given the values at which PyTorch's reference tests look."""
    return Op(name, "input", limit=3, values=(opinfo.generate_elementwise_unary_small_value_tensors,
                                              opinfo.generate_elementwise_unary_large_value_tensors,
                                              opinfo.generate_elementwise_unary_extremal_value_tensors))


OPS = [
    Op("cholesky", "input upper=False", "linalg.cholesky"),
    Op("solve_triangular", "A B upper=None left=True unitriangular=False", "linalg.solve_triangular", limit=12),
    Op("solve", "A B left=True", "linalg.solve", limit=8),
    Op("inv", "input", "linalg.inv"),
    Op("slogdet", "input", "linalg.slogdet"),
    Op("logdet", "input"),
    Op("det", "input", "linalg.det"),
    Op("det", "input", "linalg.det", variant="singular"),
    Op("diagonal", "input offset=0 dim1=0 dim2=1", limit=8),
    Op("diag_embed", "input offset=0 dim1=-2 dim2=-1", limit=8),
    Op("trace", "input"),
    Op("norm", "input p=2 dim=None keepdim=False", limit=14, wanted=lambda x, a: not isinstance(a["p"], str)),
    Op("norm", "input p=2 dim=None keepdim=False", variant="inf"),
    Op("eigh", "input UPLO='L'", "linalg.eigh", call=of_eigh(lambda w, V: w), graph=eigenvalues),
    Op("eigh", "input UPLO='L'", "linalg.eigh", graph=function_of_matrix,
       call=of_eigh(lambda w, V: (V * w.tanh().unsqueeze(-2)) @ V.transpose(-2, -1))),
    Op("qr", "A mode='reduced'", "linalg.qr", wanted=lambda x, a: a["mode"] == "reduced", limit=10),
    Op("lstsq", "A b driver='gels'", "linalg.lstsq", outputs=first, wanted=lambda x, a: a["driver"] == "gels"),
    Op("svd", "input full_matrices=True", "linalg.svd", call=of_svd(lambda U, S, Vh: S), graph=singular_values),
    Op("svd", "input full_matrices=True", "linalg.svd", graph=tanh_of_singular_values,
       call=of_svd(lambda U, S, Vh: (U * S.tanh().unsqueeze(-2)) @ Vh), wanted=lambda x, a: not a["full_matrices"]),
    Op("svd", "input full_matrices=True", "linalg.svd", graph=spans,
       call=of_svd(lambda U, S, Vh: (U @ U.transpose(-2, -1)).detach()), wanted=lambda x, a: a["full_matrices"]),
    Op("pinv", "input rtol=None", "linalg.pinv"),
    Op("matrix_exp", "input"),
    *map(function, "sin cos tan asin acos atan sinh cosh log1p expm1 log2 log10 exp2 floor ceil round sign lgamma "
                       "digamma erfc erfinv".split()),
    Op("atan2", "input other"),
    Op("fmod", "input other"),
    Op("xlogy", "input other"),
    Op("polygamma", "input n=0", variant="polygamma_n_0", limit=10, call=lambda x, a: torch.polygamma(a["n"], x["input"])),
    Op("leaky_relu", "input negative_slope=0.01", "nn.functional.leaky_relu"),
    Op("elu", "input alpha=1.0", "nn.functional.elu"),
    Op("log_sigmoid", "input", "nn.functional.logsigmoid"),
    Op("std", "input dim=None correction=1 keepdim=False", call=std, limit=8,
       wanted=has_plain_std),
    Op("prod", "input dim=None keepdim=False", limit=8,
       call=lambda x, a: x["input"].prod() if a["dim"] is None else x["input"].prod(a["dim"], a["keepdim"])),
    Op("cumsum", "input dim=0"),
    Op("cumprod", "input dim=0", limit=8),
    Op("flip", "input dims=()"),
    Op("roll", "input shifts=0 dims=None", limit=8),
    Op("repeat", "input repeats=()", limit=8, call=lambda x, a: x["input"].repeat(a["repeats"])),
    Op("pad", "input pad=() mode='constant' value=0.0", "nn.functional.pad", variant="constant", limit=12),
    *(Op("pad", "input pad=() mode='constant' value=0.0", "nn.functional.pad", variant=mode, limit=5,
         call=lambda x, a: F.pad(x["input"], a["pad"], a["mode"])) for mode in ("reflect", "replicate", "circular")),
    *(Op(name, "input dim=0 keepdim=False", variant="reduction_with_dim", outputs=reduced) for name in ("max", "min")),
    Op("sort", "input dim=-1 descending=False stable=False", limit=8, wanted=lambda x, a: a["stable"]),
    Op("topk", "input k=1 dim=-1 largest=True sorted=True", limit=8, wanted=lambda x, a: a["sorted"]),
    Op("argmax", "input dim=None keepdim=False", limit=8),
    Op("scatter_add", "input dim=0 index src"),
    Op("index_add", "input dim=0 index source alpha=1", limit=8),
    Op("index_put", "input indices values accumulate=False", order="input values indices",
       wanted=is_defined_index_put,
       call=lambda x, a: x["input"].index_put((x["indices"],), x["values"], a["accumulate"])),
    Op("masked_select", "input mask"),
    Op("one_hot", "input num_classes=-1", "nn.functional.one_hot"),
    Op("binary_cross_entropy_with_logits", "input target weight pos_weight reduction='mean'",
       "nn.functional.binary_cross_entropy_with_logits", limit=12),
    Op("l1_loss", "input target reduction='mean'", "nn.functional.l1_loss"),
    Op("smooth_l1_loss", "input target reduction='mean' beta=1.0", "nn.functional.smooth_l1_loss", limit=8),
    Op("huber_loss", "input target reduction='mean' delta=1.0", "nn.functional.huber_loss", limit=8),
    Op("kl_div", "input target reduction='mean' log_target=False", "nn.functional.kl_div", limit=16),
]


def start_generators():
    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)


def options(op):
    """What the makers of samples take: numbers that require gradients, or integers for ops without."""
    if torch.float64 in op.info.supported_dtypes("cpu"):
        return {"device": "cpu", "dtype": torch.float64, "requires_grad": op.info.supports_autograd}
    return {"device": "cpu", "dtype": torch.int64, "requires_grad": False}


def samples_of(op):
    """(name, sample) of PyTorch's samples with the values of the reference tests after them."""
    start_generators()
    for i, sample in enumerate(op.info.sample_inputs(**options(op))):
        yield f"s{i:03}", f"sample input {i}", sample
    for make in op.values:
        kind = make.__name__.split("_")[3]
        sample = next(iter(make(op.info, device="cpu", dtype=torch.float64, requires_grad=False)))
        numbers = torch.unique(sample.input)
        if op.name == "digamma":  # below zero PyTorch's derivative is inexact, and at poles a rounding error
            numbers = numbers[~(numbers <= 0)]
        sample.input = numbers.requires_grad_(op.info.supports_autograd)
        yield kind, f"reference inputs, {kind} values", sample


def chosen(op):
    """A few samples that differ in more than their numbers, and all values of the reference tests."""
    found, values = {}, []
    for name, source, sample in samples_of(op):
        arguments = op.arguments(sample)
        if arguments is None or not op.wanted(*arguments):
            continue
        inputs, attributes = arguments
        if sum(x.numel() for x in inputs.values() if x is not None) > MOST_ELEMENTS:
            continue
        if not name[1:].isdigit():
            values.append((name, source, inputs, attributes))
            continue
        shapes = [None if x is None else (tuple(x.shape), str(x.dtype)) for x in inputs.values()]
        found.setdefault(json.dumps([shapes, plain(list(attributes.values()))]), (name, source, inputs, attributes))
    kept = list(found.values())
    if len(kept) > op.limit:
        kept = [kept[i * len(kept) // op.limit] for i in range(op.limit)]
    return kept + values


def started(x, wants_gradient):
    """A leaf with these numbers."""
    return x.detach().clone().requires_grad_(wants_gradient) if x is not None else None


def computed(op, inputs, attributes, seeds, dtype):
    """Outputs and gradients of inputs, in this type, from these gradients of the outputs (None: made here)."""
    leaves = {name: started(x.to(dtype) if x is not None and x.is_floating_point() else x,
                            x is not None and x.is_floating_point() and x.requires_grad)
              for name, x in inputs.items()}
    outputs = op.results(leaves, attributes)
    moving = [k for k, y in enumerate(outputs) if y.requires_grad]
    wanted = {name: x for name, x in leaves.items() if x is not None and x.requires_grad}
    gradients = dict.fromkeys(inputs)
    if moving and wanted:
        found = torch.autograd.grad([outputs[k] for k in moving], list(wanted.values()),
                                    [seeds(k, outputs[k]).to(dtype) for k in moving], allow_unused=True)
        gradients.update(zip(wanted, found))
    return [y.detach() for y in outputs], moving, gradients


def excess(got, want, rtol, atol):
    """How far an element is off at worst, in units of its tolerance."""
    got, want = got.to(torch.float64), want.to(torch.float64)
    if got.shape != want.shape:
        return math.inf
    off = (got - want).abs() / (atol + rtol * want.abs())
    same = (got == want) | (got.isnan() & want.isnan())
    off = torch.where(same, torch.zeros_like(off), off).nan_to_num(math.inf, math.inf, math.inf)
    return off.max().item() if off.numel() else 0.0


class Archive:
    """cases.json and arrays under names that tell their contents, in a tar file."""

    def __init__(self):
        self.files, self.cases = {}, []

    def add(self, x):
        if x is None:
            return None
        buffer = io.BytesIO()
        numpy.lib.format.write_array(buffer, numpy.asarray(x.detach().numpy(), order="C"), version=(1, 0))
        name = f"data/{hashlib.sha256(buffer.getvalue()).hexdigest()[:14]}.npy"
        self.files[name] = buffer.getvalue()
        return name

    def write(self, path):
        self.files["cases.json"] = ("[\n" + ",\n".join(map(json.dumps, self.cases)) + "\n]\n").encode()
        folder = path.rsplit("/", 1)[-1].split(".")[0]
        with lzma.open(path, "wb", preset=9 | lzma.PRESET_EXTREME) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
            for name in sorted(self.files):
                member = tarfile.TarInfo(f"{folder}/{name}")
                member.size = len(self.files[name])
                tar.addfile(member, io.BytesIO(self.files[name]))


def seed(dtype):
    """The gradient of output k: cos(i + k) for element i, as the type has it."""
    return lambda k, y: (torch.arange(y.numel(), dtype=torch.float64) + k).cos().to(dtype).to(torch.float64).reshape(y.shape)


def everything(outputs, gradients):
    return [y for y in outputs if y.is_floating_point()] + [g for g in gradients.values() if g is not None]


def case(op, archive, name, source, inputs, attributes, dtype):
    """Adds the sample as a case of the type; returns why not, or None."""
    type_name, ending, rtol, atol = TYPES[dtype]

    def in_type(x):  # exactly what the case holds
        if x is None or not x.is_floating_point():
            return x
        return x.detach().to(dtype).to(torch.float64).requires_grad_(x.requires_grad)

    exact = {key: in_type(x) for key, x in inputs.items()}
    outputs, moving, gradients = computed(op, exact, attributes, seed(dtype), torch.float64)
    if max(y.numel() for y in outputs) > MOST_ELEMENTS:
        return "too large"
    if any(x is not None and x.is_complex() for x in [*exact.values(), *outputs]):
        return "complex"
    want = [y.to(dtype) if y.is_floating_point() else y for y in outputs]
    want_gradients = {key: None if g is None else g.to(dtype) for key, g in gradients.items()}

    # PyTorch's own rounding, and what inputs that are moved by as much change
    others = [computed(op, exact, attributes, seed(dtype), dtype)] if dtype == torch.float32 else []
    if op.is_smooth:
        generator = torch.Generator().manual_seed(0)

        def moved(x):
            if x is None or not x.is_floating_point():
                return x
            signs = torch.randint(-1, 2, x.shape, generator=generator)
            return (x.detach() * (1 + torch.finfo(dtype).eps * signs)).requires_grad_(x.requires_grad)

        others += [computed(op, {k: moved(x) for k, x in exact.items()}, attributes, seed(dtype), torch.float64)
                   for _ in range(3)]
    off = max((excess(g, w, rtol, atol) for o in others
               for g, w in zip(everything(o[0], o[2]), everything(want, want_gradients))), default=0.0)
    scale = max(1.0, 4 * off)
    if scale > MOST_SCALE:
        return f"PyTorch is off by {off:.3g} tolerances"
    numbers = everything(want, want_gradients)
    shapes = {tuple(x.shape) for x in exact.values() if x is not None and x.is_floating_point()}
    tags = [tag for tag, holds in (
        ("graph", op.graph), ("broadcast", len(shapes) > 1 and len(op.defaults) == 0),
        ("nonfinite", any(not y.isfinite().all() for y in numbers)),
        ("zero_size", any(x is not None and not x.numel() for x in [*exact.values(), *outputs])),
        ("scaled_tolerance", scale > 1)) if holds]
    attributes = {key: plain(value) for key, value in attributes.items()}
    if op.graph:
        nodes, output = op.graph(attributes)
        attributes = {"nodes": nodes, "outputs": [output]}
    seeds = [archive.add(seed(dtype)(k, y).to(dtype)) if k in moving else None for k, y in enumerate(outputs)]
    moves = any(g is not None for g in gradients.values())
    archive.cases.append({
        "id": ".".join(["opinfo", op.name, *([op.kind] if op.kind else []), name, ending]),
        "op": "graph" if op.graph else op.name, "dtype": type_name, "attrs": attributes,
        "inputs": [archive.add(x.to(dtype) if x is not None and x.is_floating_point() else x) for x in exact.values()],
        "outputs": list(map(archive.add, want)),
        "grad_output": None if not moves else seeds if len(seeds) > 1 else seeds[0],
        "grad_inputs": [archive.add(g) for g in want_gradients.values()], "rtol": rtol * scale, "atol": atol * scale,
        "source": f"torch 1.13.1 OpInfo {' '.join(filter(None, (op.source, op.variant)))}, {source}",
        "tags": tags})
    return None


def main(path):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    archive = Archive()
    for op, dtype in itertools.product((op for op in OPS if op.info), TYPES):
        for name, source, inputs, attributes in chosen(op):
            try:
                left_out = case(op, archive, name, source, inputs, attributes, dtype)
            except (RuntimeError, TypeError, ValueError, IndexError) as error:
                left_out = str(error).splitlines()[0]
            if left_out:
                print(f"left out: {op.name} {op.kind} {name} in {TYPES[dtype][0]}: {left_out}", file=sys.stderr)
    archive.write(path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    main(sys.argv[1])
