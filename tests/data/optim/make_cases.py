#!/usr/bin/env python3
"""Writes what PyTorch's optimizers, schedulers, clipping and averaged models do: make_cases.py FOLDER

The cases beside this file were made with PyTorch 2.13.0. Numbers that JSON has not are strings.
"""

import json
import math
import pathlib
import sys

import torch
from torch.optim import lr_scheduler
from torch.optim.swa_utils import AveragedModel

torch.manual_seed(1)
SHAPES = [(2, 3), (4,), ()]
UNKNOWN = {"foreach", "differentiable", "capturable", "fused"}  # all at their defaults


def plain(value):
    if isinstance(value, torch.Tensor):
        value = value.flatten().tolist()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def flat_state(optimizer):
    """The nested state dict with dots: arrays as lists, numbers as numbers."""
    state = optimizer.state_dict()
    flat = {}
    for group, options in enumerate(state["param_groups"]):
        for name, value in options.items():
            if name in UNKNOWN:
                assert not value
            elif name in ("maximize", "amsgrad"):  # saved if true
                flat |= {f"param_groups.{group}.{name}": 1.0} if value else {}
            elif name == "adjust_lr_fn":
                flat |= {f"param_groups.{group}.{value}": 1.0} if value == "match_rms_adamw" else {}
            elif name == "decoupled_weight_decay" and isinstance(optimizer, torch.optim.Adam):
                assert value == isinstance(optimizer, torch.optim.AdamW)  # what makes an AdamW of an Adam
            elif isinstance(value, (list, tuple)):
                flat |= {f"param_groups.{group}.{name}.{i}": float(v) for i, v in enumerate(value)}
            else:
                flat[f"param_groups.{group}.{name}"] = float(value)
    for i, slots in state["state"].items():
        for name, value in slots.items():
            if name in ("step", "mu_product"):
                flat[f"state.{i}.{name}"] = float(value)
            elif value is not None:
                flat[f"state.{i}.{name}"] = plain(value)
    return flat


def optimizer_case(kind, *groups, steps=6, dtype=torch.float64, skip=(), scale=1.0, shapes=SHAPES):
    """`groups` are options; `skip` lists the (step, parameter) that get no gradient."""
    parameters = [[torch.randn(s, dtype=dtype).requires_grad_() for s in shapes] for _ in groups]
    every = [p for group in parameters for p in group]
    if len(groups) == 1:  # of a group Adagrad does not read initial_accumulator_value
        optimizer = getattr(torch.optim, kind)(every, **groups[0])
    else:
        optimizer = getattr(torch.optim, kind)([{"params": p, **o} for p, o in zip(parameters, groups)])
    case = {"optimizer": kind, "dtype": str(dtype).removeprefix("torch."), "groups": groups, "shapes": shapes}
    case["start"] = plain([p.detach() for p in every])
    case["gradients"] = []
    for step in range(steps):
        for i, p in enumerate(every):
            p.grad = None if (step, i) in skip else scale * torch.randn(p.shape, dtype=dtype)
        case["gradients"].append([None if p.grad is None else plain(p.grad) for p in every])
        optimizer.step()
    case["end"] = plain([p.detach() for p in every])
    case["state"] = flat_state(optimizer)
    return case


def scheduler_case(name, make, *rates, steps=25, **arguments):
    parameters = [torch.zeros(1).requires_grad_() for _ in rates]
    optimizer = torch.optim.SGD([{"params": [p], "lr": lr} for p, lr in zip(parameters, rates)], lr=1.0)
    scheduler = make(optimizer)
    seen = [[group["lr"] for group in optimizer.param_groups]]
    for _ in range(steps):
        optimizer.step()
        scheduler.step()
        seen.append([group["lr"] for group in optimizer.param_groups])
    return {"scheduler": name, "arguments": arguments, "base": rates, "rates": seen}


def clip_case(clip, limit, *gradients, dtype=torch.float64):
    parameters = []
    for gradient in gradients:
        parameters.append(torch.zeros(len(gradient), dtype=dtype).requires_grad_())
        parameters[-1].grad = torch.tensor(gradient, dtype=dtype)
    before = plain([p.grad for p in parameters])
    norm = getattr(torch.nn.utils, clip + "_")(parameters, limit)
    result = {"call": clip, "limit": limit, "gradients": before, "clipped": plain([p.grad for p in parameters])}
    return result | ({} if norm is None else {"norm": plain(norm.item())})


def average_case(decay, updates=5):
    model = torch.nn.Linear(3, 2).double()
    averaged = AveragedModel(model, avg_fn=lambda average, p, n: decay * average + (1 - decay) * p)
    case = {"decay": decay, "weights": [], "averages": []}
    for _ in range(updates):
        with torch.no_grad():
            model.weight.normal_()
        averaged.update_parameters(model)
        case["weights"].append(plain(model.weight.detach()))
        case["averages"].append(plain(averaged.module.weight.detach()))
    case["names"] = sorted(averaged.state_dict())
    return case


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def logistic(w, b, x, y):
    return torch.nn.functional.binary_cross_entropy_with_logits(x @ w + b, y) + 0.01 * (w * w).sum()


def network(w1, b1, w2, x, y):
    return torch.nn.functional.mse_loss(torch.tanh(x @ w1.T + b1) @ w2.T, y)


def hills(x, heights, places):
    return (heights * torch.tanh(x - places)).sum() + 0.01 * (x * x).sum()


def lbfgs_case(function, start, data=(), steps=4, dtype=torch.float64, **options):
    """Losses, numbers of calls and parameters after each step of LBFGS."""
    parameters = [p.clone().to(dtype).requires_grad_() for p in start]
    data = [d.to(dtype) for d in data]
    optimizer = torch.optim.LBFGS(parameters, **options)
    case = {"function": function.__name__, "dtype": str(dtype).removeprefix("torch."), "options": options}
    case["start"] = [{"shape": list(p.shape), "values": plain(p.detach())} for p in parameters]
    case["data"] = [{"shape": list(d.shape), "values": plain(d)} for d in data]
    case["steps"] = []
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = function(*parameters, *data)
        loss.backward()
        return loss

    for _ in range(steps):
        loss = optimizer.step(closure)
        case["steps"].append({"loss": loss.item(), "calls": calls, "parameters": plain([p.detach() for p in parameters])})
    case["state"] = flat_lbfgs_state(optimizer)
    return case


def flat_lbfgs_state(optimizer):
    """Without "al" and "prev_loss", which nobody reads in the next step."""
    state = optimizer.state_dict()
    group = state["param_groups"][0]
    group["line_search_fn"] = float(group["line_search_fn"] is not None)
    flat = {f"param_groups.0.params.{i}": float(i) for i in group.pop("params")}
    flat |= {f"param_groups.0.{name}": float(value) for name, value in group.items()}
    for name, value in state["state"][0].items():
        if name in ("old_dirs", "old_stps", "ro"):
            flat |= {f"state.0.{name}.{i}": plain(v) if v.dim() else v.item() for i, v in enumerate(value)}
        elif name in ("d", "prev_flat_grad"):
            flat[f"state.0.{name}"] = plain(value)
        elif name not in ("al", "prev_loss"):
            flat[f"state.0.{name}"] = float(value)
    return flat


SGD = [
    {},
    {"lr": 0.1},
    {"lr": 0.1, "weight_decay": 0.2},
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.3},
    {"lr": 0.1, "momentum": 0.9, "dampening": -0.5, "weight_decay": 0.2},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    {"lr": 0.1, "momentum": 1.1, "weight_decay": 0.2, "nesterov": True},
    {"lr": 0.0, "momentum": 0.9},
]
ADAM = [
    {},
    {"lr": 0.1},
    {"lr": 0.1, "betas": (0.5, 0.8)},
    {"lr": 0.1, "betas": (0.0, 0.0)},
    {"lr": 0.1, "eps": 0.01},
    {"lr": 0.1, "weight_decay": 0.2},
    {"lr": 0.1, "weight_decay": 0.0},
    {"lr": 0.2, "betas": (0.7, 0.95), "eps": 1e-4, "weight_decay": 0.3},
]
optimizers = [optimizer_case("SGD", options) for options in SGD]
for kind in ["Adam", "AdamW"]:
    optimizers += [optimizer_case(kind, options) for options in ADAM]
for kind, options in [("SGD", SGD), ("Adam", ADAM), ("AdamW", ADAM)]:
    optimizers.append(optimizer_case(kind, options[5], options[3], options[0], skip={(0, 1), (2, 1), (3, 3), (0, 4)}))
    optimizers.append(optimizer_case(kind, options[3], skip={(step, 1) for step in range(6)}))
# The rounding of float(1 - lr weight_decay) p shows after many steps.
optimizers.append(optimizer_case("AdamW", {"lr": 1e-4, "weight_decay": 0.1}, steps=300, dtype=torch.float32, scale=0.1))

schedulers = []
for factor, total_iters in [(1 / 3, 5), (0.1, 8), (1.0, 3)]:
    make = lambda o: lr_scheduler.ConstantLR(o, factor, total_iters)
    schedulers.append(scheduler_case("ConstantLR", make, 0.1, 2.0, factor=factor, total_iters=total_iters))
for start, end, total_iters in [(1 / 3, 1.0, 5), (0.01, 1.0, 1), (0.25, 0.75, 20), (1.0, 0.0, 10)]:
    make = lambda o: lr_scheduler.LinearLR(o, start, end, total_iters)
    arguments = {"start_factor": start, "end_factor": end, "total_iters": total_iters}
    schedulers.append(scheduler_case("LinearLR", make, 0.1, 2.0, **arguments))
for T_max, eta_min in [(10, 0), (25, 0.01), (7, 0.05), (1, 0.001)]:
    make = lambda o: lr_scheduler.CosineAnnealingLR(o, T_max, eta_min)
    schedulers.append(scheduler_case("CosineAnnealingLR", make, 0.1, 2.0, T_max=T_max, eta_min=eta_min))
for step_size, gamma in [(3, 0.1), (1, 0.9), (10, 0.5)]:
    make = lambda o: lr_scheduler.StepLR(o, step_size, gamma)
    schedulers.append(scheduler_case("StepLR", make, 0.1, 2.0, step_size=step_size, gamma=gamma))
for d_model, warmup in [(512, 4), (64, 1), (3, 100)]:
    rule = lambda epoch: d_model**-0.5 * min((epoch + 1) ** -0.5, (epoch + 1) * warmup**-1.5)
    make = lambda o: lr_scheduler.LambdaLR(o, rule)
    schedulers.append(scheduler_case("InverseSquareRootLR", make, 1.0, 2.0, d_model=d_model, warmup_steps=warmup))
schedulers.append(
    scheduler_case("LambdaLR", lambda o: lr_scheduler.LambdaLR(o, [lambda e: 0.95**e, lambda e: 1 / (1 + e)]), 0.1, 2.0)
)
schedulers.append(
    scheduler_case(
        "SequentialLR",
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.LinearLR(o, 0.2, 1.0, 5), lr_scheduler.CosineAnnealingLR(o, 12, 0.01), lr_scheduler.StepLR(o, 2, 0.5)], [5, 17]
        ),
        0.1,
        2.0,
    )
)

clips = [clip_case("clip_grad_norm", limit, [3.0, 0.0], [-4.0]) for limit in [1.0, 5.0, 10.0, 0.0, math.inf]]
for bad in [math.nan, math.inf, -math.inf]:
    clips += [clip_case("clip_grad_norm", 1.0, [3.0, bad], [-4.0]), clip_case("clip_grad_value", 2.5, [3.0, bad], [-4.0, 1.0])]
clips += [clip_case("clip_grad_value", limit, [3.0, 0.25], [-4.0, -0.5]) for limit in [0.5, 3.5, 0.0, math.inf]]
for clip in clips:
    clip["limit"] = plain(clip["limit"])

averages = [average_case(decay) for decay in [0.9, 0.999, 0.0, 1.0]]

valley = [torch.tensor([-1.2, 1.0])]
floor = [torch.tensor([1 + 1e-7, 1.0], dtype=torch.float64)]  # changes too small to be remembered
long_valley = [torch.linspace(-1, 0.5, 10, dtype=torch.float64)]
points = [torch.randn(40, 5, dtype=torch.float64), (torch.rand(40) < 0.5).double()]
weights = [torch.zeros(5), torch.zeros(())]
pairs = [torch.randn(20, 3, dtype=torch.float64), torch.randn(20, 2, dtype=torch.float64)]
layers = [0.5 * torch.randn(s, dtype=torch.float64) for s in [(4, 3), (4,), (2, 4)]]
wolfe = {"line_search_fn": "strong_wolfe"}
lbfgs = [  # not to the last digit of a minimum: differences of almost equal gradients are mostly rounding
    lbfgs_case(rosenbrock, valley, max_iter=15, steps=1, **wolfe),
    lbfgs_case(rosenbrock, valley, max_iter=4, steps=4, **wolfe),
    lbfgs_case(rosenbrock, valley, lr=0.1, max_iter=5, max_eval=3, steps=6),
    lbfgs_case(rosenbrock, valley, lr=1e-3, max_iter=3, steps=3),
    lbfgs_case(rosenbrock, valley, lr=20, max_iter=6, max_eval=7, history_size=2, steps=2, **wolfe),
    lbfgs_case(rosenbrock, floor, lr=1e-3, max_iter=5, tolerance_grad=0, tolerance_change=0, steps=2),
    # A second place that is hardly lower than the start, and one that is higher than the first but not the start.
    lbfgs_case(hills, [torch.tensor([-0.25])], [torch.tensor([-2, 1.275757]), torch.arange(2.0)], lr=4, max_iter=3, steps=1, **wolfe),
    lbfgs_case(hills, [torch.tensor([2.5])], [torch.tensor([0, 0.25, -1, -1.25, -2.25, 3]), torch.arange(6.0)], lr=0.5, max_iter=1, steps=1, **wolfe),
    lbfgs_case(rosenbrock, long_valley, max_iter=5, history_size=3, steps=3, **wolfe),
    lbfgs_case(rosenbrock, long_valley, max_iter=10, max_eval=12, steps=2, **wolfe),
    lbfgs_case(logistic, weights, points, tolerance_grad=1e-4),
    lbfgs_case(logistic, weights, points, tolerance_grad=1e-4, **wolfe),
    lbfgs_case(logistic, weights, points, lr=0.3, max_iter=5, history_size=2, tolerance_grad=1e-2, steps=6),
    lbfgs_case(logistic, weights, points, lr=3e-3, max_iter=5, tolerance_change=1e-3, steps=2, **wolfe),
    lbfgs_case(logistic, weights, points, tolerance_grad=10, steps=2),
    lbfgs_case(logistic, weights, points, tolerance_change=10, steps=2),
    lbfgs_case(network, layers, pairs, max_iter=6, **wolfe),
    lbfgs_case(network, layers, pairs, lr=0.2, max_iter=6, history_size=5),
    lbfgs_case(network, layers, pairs, max_iter=3, steps=2, dtype=torch.float32, **wolfe),
    lbfgs_case(logistic, weights, points, max_iter=3, steps=2, dtype=torch.float32),
]

# What came later draws last, so that the cases before stay as they are.
LATER = {
    "SGD": [{"lr": 0.1, "maximize": True}, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.2, "maximize": True}],
    "Adam": [
        {"lr": 0.1, "amsgrad": True},
        {"lr": 0.1, "betas": (0.5, 0.8), "weight_decay": 0.2, "amsgrad": True, "maximize": True},
    ],
    "AdamW": [{"lr": 0.1, "amsgrad": True}, {"lr": 0.1, "weight_decay": 0.3, "maximize": True}],
    "NAdam": [
        {},
        {"lr": 0.1, "momentum_decay": 0.3, "weight_decay": 0.2},
        {"lr": 0.1, "betas": (0.5, 0.8), "eps": 0.01, "weight_decay": 0.3, "decoupled_weight_decay": True, "maximize": True},
    ],
    "RAdam": [
        {},
        {"lr": 0.1, "betas": (0.5, 0.9), "weight_decay": 0.2},
        {"lr": 0.1, "betas": (0.9, 0.8), "eps": 0.01, "weight_decay": 0.3, "decoupled_weight_decay": True, "maximize": True},
    ],
    "RMSprop": [
        {},
        {"lr": 0.1, "alpha": 0.5, "eps": 0.01, "weight_decay": 0.2},
        {"lr": 0.1, "momentum": 0.9, "maximize": True},
        {"lr": 0.05, "alpha": 0.9, "eps": 1e-3, "momentum": 0.8, "centered": True},
    ],
    "Adagrad": [
        {},
        {"lr": 0.1, "lr_decay": 0.2, "weight_decay": 0.2},
        {"lr": 0.1, "initial_accumulator_value": 0.5, "eps": 0.01, "maximize": True},
    ],
}
for kind, options in LATER.items():
    optimizers += [optimizer_case(kind, one) for one in options]
    optimizers.append(optimizer_case(kind, options[1], options[0], skip={(0, 1), (2, 1), (3, 3), (0, 4)}))
matrices = [(3, 5), (6, 2), (4, 4)]
for one in [{}, {"lr": 0.1, "nesterov": False}, {"lr": 0.1, "momentum": 0.5, "weight_decay": 0, "adjust_lr_fn": "match_rms_adamw"}]:
    optimizers.append(optimizer_case("Muon", one, shapes=matrices))
optimizers.append(optimizer_case("Muon", {"lr": 0.1, "ns_coefficients": (2, -1.5, 0.5), "ns_steps": 3, "eps": 1e-3}, shapes=matrices, dtype=torch.float32, skip={(0, 1)}))

for milestones, gamma in [([2, 5, 5, 17], 0.5), ([9, 3], 0.1)]:
    make = lambda o: lr_scheduler.MultiStepLR(o, milestones, gamma)
    schedulers.append(scheduler_case("MultiStepLR", make, 0.1, 2.0, milestones=milestones, gamma=gamma))
schedulers.append(scheduler_case("ExponentialLR", lambda o: lr_scheduler.ExponentialLR(o, 0.9), 0.1, 2.0, gamma=0.9))
for total_iters, power in [(5, 1.0), (12, 2.5)]:
    make = lambda o: lr_scheduler.PolynomialLR(o, total_iters, power)
    schedulers.append(scheduler_case("PolynomialLR", make, 0.1, 2.0, total_iters=total_iters, power=power))
for T_0, T_mult, eta_min in [(4, 1, 0), (1, 2, 0.01), (3, 3, 0)]:
    make = lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0, T_mult, eta_min)
    schedulers.append(scheduler_case("CosineAnnealingWarmRestarts", make, 0.1, 2.0, T_0=T_0, T_mult=T_mult, eta_min=eta_min))
CYCLE = {"pct_start": 0.3, "anneal_strategy": "cos", "div_factor": 25.0, "final_div_factor": 1e4, "three_phase": False}
for changes in [{}, {"anneal_strategy": "linear", "final_div_factor": 0.5}, {"pct_start": 0.4, "three_phase": True}, {"pct_start": 0.0}]:
    arguments = {"max_lr": [0.5, 1.5], "total_steps": 25, **CYCLE, **changes}
    make = lambda o: lr_scheduler.OneCycleLR(o, cycle_momentum=False, **arguments)
    schedulers.append(scheduler_case("OneCycleLR", make, 0.1, 2.0, **arguments))

cases = {
    "optimizers": optimizers,
    "schedulers": schedulers,
    "clips": clips,
    "lbfgs": lbfgs,
    "averages": averages,
}
path = pathlib.Path(sys.argv[1]) / "cases.json"
path.write_text(json.dumps(cases, separators=(",", ":"), allow_nan=False) + "\n")
