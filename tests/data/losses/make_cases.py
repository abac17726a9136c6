#!/usr/bin/env python3
"""Writes conformance cases of losses and distributions, with second derivatives: make_cases.py ARCHIVE.tar.xz

The cases have the format of tests/data/conformance_format.md, and `second`: with g_i the gradients of the inputs, made from
the seed `grad_output`, and S the sum of g_i * w_i over the inputs i, `weights` has the file of w_i for each (null: not in the
sum), `grad_inputs` the gradient of S for each input, and `grad_seeds` that for the seed. tests/data/losses.tar.xz was made
with PyTorch 2.13.0.
"""

import hashlib
import io
import json
import lzma
import pathlib
import sys
import tarfile

import numpy
import torch
import torch.distributions as D
import torch.nn.functional as F

torch.manual_seed(5)
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

REDUCTIONS = ["none", "mean", "sum"]
files, cases = {}, []


def add(x):
    """The name of the file of an array."""
    if x is None:
        return None
    buffer = io.BytesIO()
    numpy.lib.format.write_array(buffer, numpy.asarray(x.numpy(force=True), order="C"), version=(1, 0))
    name = f"data/{hashlib.sha256(buffer.getvalue()).hexdigest()[:14]}.npy"
    files[name] = buffer.getvalue()
    return name


def case(op, function, inputs, attrs, differentiable=None, case_op=None, case_attrs=None):
    """Adds a case. Inputs that require gradients are differentiated, twice by `differentiable` if it is given."""
    seed_of = lambda y: torch.arange(y.numel()).double().cos().reshape(y.shape)
    leaves = [x if x is None or not x.requires_grad else x.detach().requires_grad_() for x in inputs]
    moving = [x for x in leaves if x is not None and x.requires_grad]
    y = function(*leaves)
    grads = iter(torch.autograd.grad(y, moving, seed_of(y)))
    grad_inputs = [next(grads) if x is not None and x.requires_grad else None for x in leaves]

    seed = seed_of(y).requires_grad_()
    first = torch.autograd.grad((differentiable or function)(*leaves), moving, seed, create_graph=True)
    weights = [torch.randn_like(x) for x in moving]
    total = sum((g * w).sum() for g, w in zip(first, weights))
    second = torch.autograd.grad(total, [*moving, seed], materialize_grads=True)

    def spread(found):
        rest = iter(found)
        return [add(next(rest)) if x is not None and x.requires_grad else None for x in leaves]

    number = sum(one["id"].startswith(f"losses.{op}.") for one in cases)
    cases.append({
        "id": f"losses.{op}.{number:02}.f64", "op": case_op or op, "dtype": "float64", "attrs": case_attrs or attrs,
        "inputs": [add(x) for x in leaves], "outputs": [add(y)], "grad_output": add(seed), "grad_inputs": list(map(add, grad_inputs)),
        "second": {"weights": spread(weights), "grad_inputs": spread(second[:-1]), "grad_seeds": [add(second[-1])], "rtol": 1e-9,
                   "atol": 1e-11},
        "rtol": 1e-9, "atol": 1e-11, "source": "torch 2.13.0", "tags": []})


def refused(op, inputs, attrs):
    cases.append({"id": f"losses.{op}.error.{len(cases)}.f64", "op": op, "dtype": "float64", "attrs": attrs, "inputs": list(map(add, inputs)),
                  "outputs": [], "grad_output": None, "grad_inputs": [None for _ in inputs], "rtol": 1e-9, "atol": 1e-11,
                  "source": "torch 2.13.0", "tags": ["error"], "expect_error": True, "error_kind": "opinfo"})


def numbers(*shape, low=-2.0, high=2.0):
    return (low + (high - low) * torch.rand(shape)).requires_grad_()


def labels(*shape):
    return torch.where(torch.rand(shape) < 0.5, -1.0, 1.0)


def multi_margin(x, target, weight, p, margin, reduction):
    """The same of single ops: PyTorch's has no second derivative."""
    over = (margin - x.gather(1, target[:, None]) + x).clamp(min=0) ** p
    own = F.one_hot(target, x.shape[1]).bool()
    losses = over.masked_fill(own, 0).sum(1) * (1 if weight is None else weight[target]) / x.shape[1]
    return losses if reduction == "none" else getattr(losses, reduction)()


def ctc(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    """The same by sums over paths in logarithms: PyTorch's has no second derivative."""
    losses, start = [], 0
    for n, (steps, length) in enumerate(zip(input_lengths.tolist(), target_lengths.tolist())):
        own = targets[start:start + length] if targets.dim() == 1 else targets[n, :length]
        start += length
        places = [blank]
        for label in own.tolist():
            places += [label, blank]
        row = [log_probs[0, n, c] if s < 2 else None for s, c in enumerate(places)]
        for t in range(1, steps):
            before, row = row, []
            for s, c in enumerate(places):
                skips = s > 1 and c != blank and c != places[s - 2]
                coming = [before[s - k] for k in range(3 if skips else 2) if s >= k and before[s - k] is not None]
                row.append(torch.logsumexp(torch.stack(coming), 0) + log_probs[t, n, c] if coming else None)
        ends = [one for one in row[-2:] if one is not None]
        losses.append(-torch.logsumexp(torch.stack(ends), 0) if ends else log_probs.sum() * 0)
    losses = torch.stack(losses)
    if reduction == "mean":
        return (losses / target_lengths.clamp(min=1)).mean()
    return losses if reduction == "none" else losses.sum()


def call(op, *inputs, **attrs):
    case(op, lambda *x: getattr(F, op)(*x, **attrs), inputs, attrs)


for reduction in REDUCTIONS:
    call("margin_ranking_loss", numbers(2, 3), numbers(2, 3), labels(2, 3), margin=0.7, reduction=reduction)
    call("margin_ranking_loss", numbers(5), numbers(1), labels(5), margin=0.0, reduction=reduction)
    call("cosine_embedding_loss", numbers(4, 3), numbers(4, 3), labels(4), margin=-0.2, reduction=reduction)
    call("cosine_embedding_loss", numbers(3), numbers(3), labels(), margin=0.1, reduction=reduction)
    call("hinge_embedding_loss", numbers(3, 4), labels(3, 4), margin=1.0, reduction=reduction)
    call("hinge_embedding_loss", numbers(3, 4), labels(4), margin=0.3, reduction=reduction)
    call("soft_margin_loss", numbers(3, 4), labels(3, 4), reduction=reduction)
    for p, swap in [(2.0, False), (1.0, True), (3.0, True)]:
        triplet = [numbers(4, 3) for _ in range(3)]
        call("triplet_margin_loss", *triplet, margin=1.0, p=p, eps=1e-6, swap=swap, reduction=reduction)
    for full in (False, True):
        call("gaussian_nll_loss", numbers(3, 4), numbers(3, 4), numbers(3, 4, low=0.2), full=full, eps=1e-6, reduction=reduction)
        call("gaussian_nll_loss", numbers(3, 4), numbers(3, 4), numbers(3, low=0.2), full=full, eps=0.5, reduction=reduction)
        for log_input in (True, False):
            counts = torch.randint(0, 6, (3, 4)).double()
            rates = numbers(3, 4, low=-2 if log_input else 0.2)
            call("poisson_nll_loss", rates, counts, log_input=log_input, full=full, eps=1e-8, reduction=reduction)
    for p, weight in [(1, None), (2, torch.rand(5) + 0.5)]:
        scores, target, attrs = numbers(4, 5), torch.randint(0, 5, (4,)), {"p": p, "margin": 0.8, "reduction": reduction}
        case("multi_margin_loss", lambda x, t, w: F.multi_margin_loss(x, t, weight=w, **attrs), [scores, target, weight], attrs,
             differentiable=lambda x, t, w: multi_margin(x, t, w, **attrs))


def ctc_case(steps, classes, targets, input_lengths, target_lengths, blank, reduction, zero_infinity=False):
    attrs = {"blank": blank, "reduction": reduction, "zero_infinity": zero_infinity}
    nodes = [{"op": "log_softmax", "in": ["x0"], "attrs": {"dim": -1}, "out": ["p"]},
             {"op": "ctc_loss", "in": ["p", "x1", "x2", "x3"], "attrs": attrs, "out": ["y"]}]
    inputs = [numbers(steps, len(input_lengths), classes), *map(torch.tensor, (targets, input_lengths, target_lengths))]
    case("ctc_loss", lambda x, *ids: F.ctc_loss(x.log_softmax(-1), *ids, **attrs), inputs, attrs,
         lambda x, *ids: ctc(x.log_softmax(-1), *ids, **attrs), "graph", {"nodes": nodes, "outputs": ["y"]})


for reduction in REDUCTIONS:
    ctc_case(6, 4, [[1, 2, 3], [1, 1, 0], [2, 0, 0]], [6, 5, 3], [3, 2, 1], 0, reduction)
    ctc_case(7, 5, [0, 1, 1, 3, 2], [7, 7], [2, 3], 4, reduction)
    ctc_case(4, 3, [[1, 1], [2, 1]], [2, 4], [2, 2], 0, reduction, zero_infinity=True)  # the first has no path
    ctc_case(3, 3, [[1], [2]], [3, 2], [0, 1], 0, reduction)

case("normal_log_prob", lambda m, s, x: D.Normal(m, s).log_prob(x), [numbers(4), numbers(4, low=0.3), numbers(3, 4)], {})
case("normal_entropy", lambda m, s: D.Normal(m, s).entropy() + 0 * m, [numbers(4), numbers(4, low=0.3)], {})
case("normal_kl", lambda *x: D.kl_divergence(D.Normal(*x[:2]), D.Normal(*x[2:])), [numbers(4), numbers(4, low=0.3), numbers(4), numbers(4, low=0.3)], {})
for name, parameters, other in [("probs", numbers(3, 2, low=0.05, high=0.95), numbers(3, 2, low=0.05, high=0.95)), ("logits", numbers(3, 2), numbers(3, 2))]:
    coin = lambda x: D.Bernoulli(**{name: x})
    case("bernoulli_log_prob", lambda p, x: coin(p).log_prob(x), [parameters, (torch.rand(4, 3, 2) < 0.5).double()], {"parameter": name})
    case("bernoulli_entropy", lambda p: coin(p).entropy(), [parameters], {"parameter": name})
    case("bernoulli_kl", lambda p, q: D.kl_divergence(coin(p), coin(q)), [parameters, other], {"parameter": name})
for name, parameters, other in [("probs", numbers(3, 4, low=0.1), numbers(3, 4, low=0.1)), ("logits", numbers(3, 4), numbers(3, 4))]:
    classes = lambda x: D.Categorical(**{name: x})
    case("categorical_log_prob", lambda p, x: classes(p).log_prob(x), [parameters, torch.randint(0, 4, (2, 3))], {"parameter": name})
    case("categorical_entropy", lambda p: classes(p).entropy(), [parameters], {"parameter": name})
    case("categorical_kl", lambda p, q: D.kl_divergence(classes(p), classes(q)), [parameters, other], {"parameter": name})

refused("cosine_embedding_loss", [numbers(2, 3), numbers(2, 3), labels(3)], {"margin": 0.0, "reduction": "mean"})
refused("margin_ranking_loss", [numbers(2), numbers(3), labels(2)], {"margin": 0.0, "reduction": "mean"})
refused("multi_margin_loss", [numbers(2, 3), torch.tensor([0, 3]), None], {"p": 1, "margin": 1.0, "reduction": "mean"})
refused("gaussian_nll_loss", [numbers(2), numbers(2), -numbers(2, low=1.0)], {"full": False, "eps": 1e-6, "reduction": "mean"})
lengths = torch.tensor([4]), torch.tensor([2])
refused("ctc_loss", [numbers(3, 1, 3), torch.tensor([[1, 2]]), *lengths], {"blank": 0, "reduction": "mean", "zero_infinity": False})

path = pathlib.Path(sys.argv[1])
files["cases.json"] = ("[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n").encode()
with lzma.open(path, "wb", preset=9 | lzma.PRESET_EXTREME) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
    for name in sorted(files):
        member = tarfile.TarInfo(f"{path.name.split('.')[0]}/{name}")
        member.size = len(files[name])
        tar.addfile(member, io.BytesIO(files[name]))
print(len(cases), "cases")
