#!/usr/bin/env python3
"""op_database.py FOLDER CONFORMANCE: all samples of PyTorch's databases of ops, modules and optimizers that xgrad has.

Writes them to FOLDER as conformance cases (tests/data/conformance_format.md) in double and in float, with values, gradients
and derivatives of gradients, runs the program CONFORMANCE on them, and compares what differs with op_database.md beside this
file, which lists by op how many cases differ on purpose. Fails if there are more, or fewer cases, and says where there are fewer
differences. Needs PyTorch 2.13.
"""

import collections
import hashlib
import itertools
import json
import pathlib
import re
import subprocess
import sys
import warnings

import numpy

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "programs"))
import opinfo_cases  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from opinfo_cases import OPS, TYPES, Op, excess, plain  # noqa: E402
from torch.testing._internal.common_modules import module_db  # noqa: E402
from torch.testing._internal.common_optimizers import optim_db  # noqa: E402

MOST_ELEMENTS = 100_000  # of all inputs of a case
opinfo_cases.MOST_SCALE = 1e3


def has_no_dtype(x, a):
    return a.get("dtype") is None


def reduction(name, **options):
    f = getattr(torch, name)
    return Op(name, "input dim=None keepdim=False", **options,
              call=lambda x, a: f(x["input"]) if a["dim"] is None else f(x["input"], a["dim"], a["keepdim"]))


def var(x, a):
    return torch.var(x["input"], dim=a["dim"], correction=a["correction"], keepdim=a["keepdim"])


# Ops with attributes, or with another name in PyTorch; add_functions_of_inputs() adds the others.
MORE = [
    Op("gelu", "input approximate='none'", "nn.functional.gelu"),
    Op("softplus", "input beta=1 threshold=20", "nn.functional.softplus"),
    *(Op(name, "input other alpha=1") for name in ("add", "sub")),
    Op("div", "input other", variant="no_rounding_mode"),
    Op("pow", "input exponent"),
    Op("where", "condition input other", order="condition input other", call=lambda x, a: torch.where(x["condition"], x["input"], x["other"])),
    Op("masked_fill", "input mask value=0"),
    Op("linear", "input weight bias", "nn.functional.linear"),
    reduction("sum", wanted=has_no_dtype),
    reduction("mean", wanted=has_no_dtype),
    reduction("amax"),
    reduction("amin"),
    reduction("logsumexp"),
    Op("var", "input dim=None correction=1 keepdim=False", call=var, wanted=opinfo_cases.has_plain_std),
    Op("reshape", "input shape=()"),
    Op("flatten", "input start_dim=0 end_dim=-1"),
    Op("transpose", "input dim0=0 dim1=1"),
    Op("permute", "input dims=()"),
    Op("unsqueeze", "input dim=0"),
    Op("expand", "input shape=()", call=lambda x, a: x["input"].expand(a["shape"])),
    Op("narrow", "input dim=0 start=0 length=0", wanted=lambda x, a: isinstance(a["start"], int)),
    Op("select", "input dim=0 index=0"),
    Op("tril", "input diagonal=0"),
    Op("triu", "input diagonal=0"),
    Op("index_select", "input dim=0 index"),
    Op("gather", "input dim=0 index"),
    Op("embedding", "ids weight padding_idx=None", "nn.functional.embedding", order="weight ids",
       call=lambda x, a: F.embedding(x["ids"], x["weight"], a["padding_idx"])),
    Op("softmax", "input dim=0", "softmax"),
    Op("log_softmax", "input dim=0", "log_softmax"),
    Op("layer_norm", "input normalized_shape=() weight bias eps=1e-05", "nn.functional.layer_norm", order="input weight bias"),
    Op("mse_loss", "input target reduction='mean'", "nn.functional.mse_loss"),
    Op("nll_loss", "input target weight reduction='mean' ignore_index=-100", "nn.functional.nll_loss", order="input target weight"),
    Op("cross_entropy", "input target weight reduction='mean' ignore_index=-100 label_smoothing=0.0", "nn.functional.cross_entropy",
       order="input target weight"),
]



class Adapted(Op):
    """An op whose arguments have another form in a case: adapt(inputs, attributes) changes them, or says no by False."""

    def __init__(self, name, parameters, source, adapt, **options):
        super().__init__(name, parameters, source, **options)
        self.adapt = adapt

    def arguments(self, sample):
        found = super().arguments(sample)
        return found if found and self.adapt(*found) is not False else None


def functional(name, parameters, **options):
    return Op(name, parameters, f"nn.functional.{name}", **options)


def set_stride(x, a):
    if a["stride"] in (None, ()):
        a["stride"] = a["kernel_size"]


def set_line(x, a):
    set_stride(x, a)
    a["kernel_size"] = list(a["kernel_size"]) if isinstance(a["kernel_size"], (tuple, list)) else [a["kernel_size"]]


def set_size(axes):
    """Lengths in place of None, which keeps that of the input."""
    def adapt(x, a):
        size = a["output_size"]
        size = list(size) if isinstance(size, (tuple, list)) else [size] * axes
        a["output_size"] = [n if wanted is None else wanted for wanted, n in zip(size, x["input"].shape[-axes:])]
    return adapt


def max_pool(axes):
    f = (F.max_pool1d, F.max_pool2d)[axes - 1]
    return Adapted(f"max_pool{axes}d", "input kernel_size=1 stride=None padding=0 dilation=1 ceil_mode=False return_indices=False",
                   f"nn.functional.max_pool{axes}d", (set_line, set_stride)[axes - 1], wanted=lambda x, a: a["return_indices"],
                   call=lambda x, a: f(x["input"], **a))


def adaptive_max_pool(axes):
    f = (F.adaptive_max_pool1d, F.adaptive_max_pool2d)[axes - 1]
    return Adapted(f"adaptive_max_pool{axes}d", "input output_size=1 return_indices=False", f"nn.functional.adaptive_max_pool{axes}d",
                   set_size(axes), wanted=lambda x, a: a["return_indices"], call=lambda x, a: f(x["input"], **a))


def batch_norm(x, a):
    """With the new running statistics, if there are."""
    mean, var = (None if s is None else s.clone() for s in (x["running_mean"], x["running_var"]))
    y = F.batch_norm(x["input"], mean, var, x["weight"], x["bias"], **a)
    return (y, mean, var) if a["training"] and mean is not None else y


def instance_norm(x, a):
    mean, var = (None if s is None else s.clone() for s in (x["running_mean"], x["running_var"]))
    return F.instance_norm(x["input"], mean, var, x["weight"], x["bias"], **a)


def quantile(x, a):
    """One number as a list of one, which makes an axis."""
    q = torch.tensor([a["q"]] if a["dim"] is not None else a["q"], dtype=x["input"].dtype)
    return torch.quantile(x["input"], q, a["dim"], a["keepdim"], interpolation=a["interpolation"])


def set_whole_repeats(x, a):
    x["repeats"] = x["repeats"].long()
    return a["dim"] is not None


def set_axes(x, a):
    n = a.pop("dims")
    if isinstance(n, int):
        rank = x["input"].dim()
        n = [range(rank - n, rank), range(n)]
    a["dims_a"], a["dims_b"] = map(list, n)


def set_lambda(x, a):
    a["lambda"] = a.pop("lambd")


def set_right(x, a):
    side, sorter = a.pop("side"), a.pop("sorter")
    a["right"] = a["right"] or side == "right"
    return sorter is None


def of_numbers(x, a):
    return all(v is None or v.is_floating_point() for v in x.values())


def compared(name):
    return Op(name, "input other", call=lambda x, a: getattr(torch, name)(x["input"], x["other"]).to(x["input"].dtype))


FURTHER = [
    functional("prelu", "input weight"),
    *(functional(f"conv{n}d", "input weight bias stride=1 padding=0 dilation=1 groups=1") for n in (1, 2)),
    *(functional(f"conv_transpose{n}d", "input weight bias stride=1 padding=0 output_padding=0 groups=1 dilation=1") for n in (1, 2)),
    max_pool(1), max_pool(2),
    Adapted("avg_pool1d", "input kernel_size=1 stride=None padding=0 ceil_mode=False count_include_pad=True",
            "nn.functional.avg_pool1d", set_line),
    Adapted("avg_pool2d", "input kernel_size=1 stride=None padding=0 ceil_mode=False count_include_pad=True divisor_override=None",
            "nn.functional.avg_pool2d", set_stride),
    *(Adapted(f"adaptive_avg_pool{n}d", "input output_size=1", f"nn.functional.adaptive_avg_pool{n}d", set_size(n)) for n in (1, 2)),
    adaptive_max_pool(1), adaptive_max_pool(2),
    functional("unfold", "input kernel_size=1 dilation=1 padding=0 stride=1"),
    *(functional("interpolate", "input size=None scale_factor=None mode='nearest' align_corners=None", variant=mode,
                 wanted=lambda x, a: a["size"] is not None and a["scale_factor"] is None and x["input"].dim() < 5,
                 call=lambda x, a: F.interpolate(x["input"], **a)) for mode in ("nearest", "linear", "bilinear", "bicubic")),
    functional("batch_norm", "input running_mean running_var weight bias training=False momentum=0.1 eps=1e-05", call=batch_norm,
               order="input weight bias running_mean running_var"),
    functional("group_norm", "input num_groups=1 weight bias eps=1e-05", order="input weight bias"),
    functional("instance_norm", "input running_mean running_var weight bias use_input_stats=True momentum=0.1 eps=1e-05",
               call=instance_norm, order="input weight bias running_mean running_var"),
    functional("rms_norm", "input normalized_shape=() weight eps=None", order="input weight"),
    functional("normalize", "input p=2.0 dim=1 eps=1e-12"),
    functional("cosine_similarity", "x1 x2 dim=1 eps=1e-08"),
    Op("cdist", "x1 x2 p=2.0 compute_mode='donot_use_mm_for_euclid_dist'"),
    Op("scatter", "input dim=0 index src"),
    *(Op("scatter_reduce", "input dim=0 index src reduce='sum' include_self=True", variant=name)
      for name in ("sum", "prod", "mean", "amax", "amin")),
    Op("logcumsumexp", "input dim=0"),
    *(Op(name, "input dim=0", outputs=tuple) for name in ("cummax", "cummin")),
    Op("median", "input dim=None keepdim=False",
       call=lambda x, a: x["input"].median() if a["dim"] is None else tuple(x["input"].median(**a))),
    Op("quantile", "input q=0.5 dim=None keepdim=False interpolation='linear'", call=quantile,
       wanted=lambda x, a: a["dim"] is not None or a["interpolation"] == "linear"),
    Op("unique", "input sorted=True return_inverse=False return_counts=False dim=None", call=lambda x, a: torch.unique(x["input"], **a),
       wanted=lambda x, a: a["sorted"] and a["return_inverse"] and a["return_counts"]),
    Adapted("searchsorted", "sorted_sequence input out_int32=False right=False side=None sorter=None", "searchsorted", set_right,
            call=lambda x, a: torch.searchsorted(x["sorted_sequence"], x["input"], right=a["right"]), order="sorted_sequence input"),
    Adapted("repeat_interleave", "input repeats dim=None output_size=None", "repeat_interleave", set_whole_repeats,
            call=lambda x, a: x["input"].repeat_interleave(x["repeats"], a["dim"])),
    Op("lerp", "input end weight"),
    Op("clamp", "input min max", wanted=of_numbers),
    Op("nan_to_num", "input nan=0.0 posinf=None neginf=None"),
    *map(compared, ("eq", "ne", "lt", "le", "gt", "ge")),
    reduction("argmin"),
    Op("argsort", "input dim=-1 descending=False stable=False", wanted=lambda x, a: a["stable"]),
    Adapted("tensordot", "input other dims=2", "tensordot", set_axes,
            call=lambda x, a: torch.tensordot(x["input"], x["other"], (a["dims_a"], a["dims_b"]))),
    Op("cross", "input other dim=-1", "linalg.cross"),
    Op("matrix_power", "A n=0", "linalg.matrix_power"),
    functional("hardtanh", "input min_val=-1.0 max_val=1.0"),
    functional("celu", "input alpha=1.0"),
    *(Adapted(name, "input lambd=0.5", f"nn.functional.{name}", set_lambda, call=lambda x, a, f=getattr(F, name): f(x["input"], a["lambda"]))
      for name in ("softshrink", "hardshrink")),
    functional("threshold", "input threshold=0.0 value=0.0"),
    functional("glu", "input dim=-1"),
    functional("embedding_bag", "weight ids offsets per_sample_weights mode='mean' include_last_offset=False padding_idx=None",
               order="weight ids offsets per_sample_weights",
               call=lambda x, a: F.embedding_bag(x["ids"], x["weight"], x["offsets"], per_sample_weights=x["per_sample_weights"], **a)),
    functional("binary_cross_entropy", "input target weight reduction='mean'"),
    functional("margin_ranking_loss", "input1 input2 target margin=0.0 reduction='mean'", wanted=of_numbers),
    functional("cosine_embedding_loss", "input1 input2 target margin=0.0 reduction='mean'"),
    functional("hinge_embedding_loss", "input target margin=1.0 reduction='mean'"),
    functional("soft_margin_loss", "input target reduction='mean'"),
    functional("triplet_margin_loss", "anchor positive negative margin=1.0 p=2.0 eps=1e-06 swap=False reduction='mean'"),
    functional("multi_margin_loss", "input target p=1 margin=1.0 weight reduction='mean'", order="input target weight"),
    functional("gaussian_nll_loss", "input target var full=False eps=1e-06 reduction='mean'"),
    functional("poisson_nll_loss", "input target log_input=True full=False eps=1e-08 reduction='mean'"),
    functional("ctc_loss", "log_probs targets input_lengths target_lengths blank=0 reduction='mean' zero_infinity=False"),
]

for op in FURTHER:
    op.is_smooth = not re.match("(adaptive_)?max_pool|cumm|median|quantile|unique|arg|searchsorted|eq$|ne$|l[te]$|g[te]$", op.name)

BY_NAME = {op.name: op for op in [*OPS, *MORE, *FURTHER]}


def add_functions_of_inputs(names):
    """Adds the other ops of these names that are functions of inputs alone in PyTorch."""
    sources = {(info.name, info.variant_test_name) for info in opinfo_cases.op_db}
    for name in names:
        source = next((s for s in (name, f"nn.functional.{name}", f"linalg.{name}") if (s, "") in sources), None)
        if name in BY_NAME or source is None:
            continue
        op = Op(name, "input", source)
        samples = list(op.info.sample_inputs(**opinfo_cases.options(op)))
        if all(isinstance(x, torch.Tensor) for s in samples for x in [s.input, *s.args, *s.kwargs.values()]):
            inputs = " ".join(["input", *(f"input{i}" for i in range(1, 1 + len(samples[0].args)))])
            BY_NAME[name] = Op(name, inputs, source, call=lambda x, a, f=op.info.op: f(*x.values()))
            FURTHER.append(BY_NAME[name])

# Modules that are a function of inputs and parameters, and the op that it is.
MODULES = {
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits", "CrossEntropyLoss": "cross_entropy", "ELU": "elu", "Embedding": "embedding",
    "GELU": "gelu", "HuberLoss": "huber_loss", "KLDivLoss": "kl_div", "L1Loss": "l1_loss", "LayerNorm": "layer_norm",
    "LeakyReLU": "leaky_relu", "Linear": "linear", "LogSigmoid": "log_sigmoid", "LogSoftmax": "log_softmax", "MSELoss": "mse_loss",
    "NLLLoss": "nll_loss", "ReLU": "relu", "SiLU": "silu", "Sigmoid": "sigmoid", "SmoothL1Loss": "smooth_l1_loss", "Softmax": "softmax",
    "Softplus": "softplus", "Tanh": "tanh",
    "AdaptiveAvgPool1d": "adaptive_avg_pool1d", "AdaptiveAvgPool2d": "adaptive_avg_pool2d", "AvgPool1d": "avg_pool1d",
    "BCELoss": "binary_cross_entropy", "CELU": "celu", "CTCLoss": "ctc_loss", "Conv1d": "conv1d", "Conv2d": "conv2d",
    "ConvTranspose1d": "conv_transpose1d", "ConvTranspose2d": "conv_transpose2d", "CosineEmbeddingLoss": "cosine_embedding_loss",
    "GLU": "glu", "GaussianNLLLoss": "gaussian_nll_loss", "GroupNorm": "group_norm", "Hardsigmoid": "hardsigmoid",
    "Hardswish": "hardswish", "Hardtanh": "hardtanh", "HingeEmbeddingLoss": "hinge_embedding_loss",
    "MarginRankingLoss": "margin_ranking_loss", "Mish": "mish", "MultiMarginLoss": "multi_margin_loss", "PReLU": "prelu",
    "PoissonNLLLoss": "poisson_nll_loss", "RMSNorm": "rms_norm", "ReLU6": "relu6", "SELU": "selu",
    "SoftMarginLoss": "soft_margin_loss", "Softsign": "softsign", "Tanhshrink": "tanhshrink", "Threshold": "threshold",
    "TripletMarginLoss": "triplet_margin_loss",
}
RECURRENT = ("RNN", "GRU", "LSTM")
PADS = {"Circular": "circular", "Constant": "constant", "Reflection": "reflect", "Replication": "replicate", "Zero": "constant"}


class Attention:
    """nn.MultiheadAttention or nn.TransformerEncoderLayer as an op of its inputs, parameters and masks."""

    kind, graph, defaults, is_smooth, variant = "", None, (), True, ""

    def __init__(self, module):
        self.module = module.train()
        self.is_layer = isinstance(module, torch.nn.TransformerEncoderLayer)
        self.name = "transformer_encoder_layer" if self.is_layer else "multi_head_attention"
        self.source = type(module).__name__
        self.attention = module.self_attn if self.is_layer else module

    def arguments(self, given):
        """The inputs by their names, and the attributes; None if the module has what the op has not."""
        of_heads = self.attention
        if of_heads.in_proj_bias is None or of_heads.bias_k is not None or of_heads.add_zero_attn:
            return None
        names = ["src"] if self.is_layer else ["query", "key", "value"]
        values = dict(zip(names, given.args), **given.kwargs)
        if values[names[0]].dim() == 3 and not of_heads.batch_first:
            return None
        inputs = {name: values[name] if values[name].dim() == 3 else values[name].detach()[None].requires_grad_() for name in names}
        inputs |= {name: p.detach().clone().requires_grad_() for name, p in self.module.named_parameters()}
        padding = values.get("src_key_padding_mask" if self.is_layer else "key_padding_mask")
        inputs["key_padding_mask"] = padding[None] if padding is not None and padding.dim() == 1 else padding
        mask = values.get("src_mask" if self.is_layer else "attn_mask")
        heads = of_heads.num_heads
        inputs["attn_mask"] = mask.unflatten(0, (-1, heads)) if mask is not None and mask.dim() == 3 else mask
        attributes = {"num_heads": heads}
        if self.is_layer:
            activation = "gelu" if self.module.activation_relu_or_gelu == 2 else "relu"
            attributes |= {"activation": activation, "norm_first": self.module.norm_first, "eps": self.module.norm1.eps}
        return inputs, attributes

    def results(self, inputs, attributes):
        inputs = dict(inputs)
        padding, mask = inputs.pop("key_padding_mask"), inputs.pop("attn_mask")
        mask = mask.flatten(0, 1) if mask is not None and mask.dim() == 4 else mask
        names = ["src"] if self.is_layer else ["query", "key", "value"]
        arguments = [x if self.attention.batch_first else x.transpose(0, 1) for x in map(inputs.pop, names)]
        masks = {"src_key_padding_mask": padding, "src_mask": mask} if self.is_layer else {"key_padding_mask": padding, "attn_mask": mask}
        y = torch.func.functional_call(self.module, inputs, tuple(arguments), masks)
        y = y if self.is_layer else y[0]
        return [y if self.attention.batch_first else y.transpose(0, 1)]


class Recurrent:
    """nn.RNN, nn.GRU or nn.LSTM as an op of its inputs, states and weights."""

    kind, graph, defaults, is_smooth, variant = "", None, (), True, ""

    def __init__(self, module):
        self.module = module.train()
        self.source = type(module).__name__
        self.name = self.source.lower()

    def arguments(self, given):
        """The inputs by their names, and the attributes; None for a packed sequence."""
        x, state = (*given.args, *given.kwargs.values(), None)[:2]
        if not isinstance(x, torch.Tensor):
            return None
        states = list(state) if isinstance(state, tuple) else [state]
        of_one = x.dim() == 2
        x = x if self.module.batch_first or of_one else x.transpose(0, 1)
        x, *states = (s if s is None else s.unsqueeze(place) if of_one else s for place, s in zip((0, 1, 1), [x, *states]))
        if self.name == "lstm" and states == [None]:
            states = [None, None]
        inputs = {"x": x, **dict(zip(("h0", "c0"), states)), "lengths": None}
        inputs = {name: s if s is None else s.detach().clone().requires_grad_() for name, s in inputs.items()}
        inputs |= {name: p.detach().clone().requires_grad_() for name, p in self.module.named_parameters()}
        names = ["hidden_size", "num_layers", "bidirectional", "bias", *{"rnn": ["nonlinearity"], "lstm": ["proj_size"]}.get(self.name, [])]
        return inputs, {name: getattr(self.module, name) for name in names}

    def results(self, inputs, attributes):
        inputs = dict(inputs)
        x, _, *states = (inputs.pop(name) for name in ("x", "lengths", "h0", *["c0"] * (self.name == "lstm")))
        state = None if states[0] is None else states[0] if len(states) == 1 else tuple(states)
        x = x if self.module.batch_first else x.transpose(0, 1)
        y, last = torch.func.functional_call(self.module, inputs, (x, state))
        return [y if self.module.batch_first else y.transpose(0, 1), *(last if isinstance(last, tuple) else [last])]


def module_case(module, given):
    """(op, inputs, attributes) of a module and what it is called with; None if no op takes them."""
    name = type(module).__name__
    if name in RECURRENT:
        op = Recurrent(module)
        found = op.arguments(given)
        return found and (op, *found)
    if name in ("MultiheadAttention", "TransformerEncoderLayer"):
        op = Attention(module)
        found = op.arguments(given)
        return found and (op, *found)
    pad = next((PADS[kind] for kind in PADS if name.startswith(kind + "Pad")), None)
    op = BY_NAME["pad" if pad else MODULES[name]]
    if pad:
        attributes = {"pad": list(module.padding), "mode": pad, "value": getattr(module, "value", 0.0)}
        results = lambda x, a: F.pad(x["input"], a["pad"], a["mode"], a["value"] if pad == "constant" else None)  # noqa: E731
        op = next(o for o in OPS if o.name == "pad" and o.kind == pad)
        op.call = op.call or results
    else:
        attributes = {name: getattr(module, name, default) for name, default in op.defaults.items()}
    attributes = {name: plain(list(value) if isinstance(value, tuple) else value) for name, value in attributes.items()}
    own = {name: x.detach().requires_grad_(isinstance(x, torch.nn.Parameter))
           for name, x in [*module.named_parameters(), *module.named_buffers()] if x is not None}
    if not set(own) <= set(op.inputs):
        return None
    rest = [name for name in op.inputs if name not in own]
    inputs = {name: own.get(name) for name in op.inputs}
    inputs.update(zip(rest, given.args), **given.kwargs)
    if any(not isinstance(x, (torch.Tensor, type(None))) for x in inputs.values()) or not op.wanted(inputs, attributes):
        return None
    if isinstance(op, Adapted):
        op.adapt(inputs, attributes)
    expected = module(*given.args, **given.kwargs)
    assert torch.equal(op.results(inputs, attributes)[0].nan_to_num(3), expected.nan_to_num(3)), name
    return op, inputs, attributes


def module_samples():
    """(name, source, op, inputs, attributes) of PyTorch's inputs of modules; None for one that no op takes."""
    for info in module_db:
        cls = info.module_cls
        known = cls.__name__ in (*MODULES, *RECURRENT) or cls in (torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer)
        if cls.__module__.startswith("torch.nn.") and (known or cls.__module__.endswith("padding")):
            opinfo_cases.start_generators()
            samples = info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=True, training=True)
            for i, sample in enumerate(samples):
                made = sample.constructor_input
                module = cls(*made.args, **made.kwargs).double()
                found = module_case(module, sample.forward_input)
                yield (f"{cls.__name__}.m{i:03}", f"{cls.__name__}, module input {i}", *found) if found else None


OPTIMIZERS = {
    "SGD": ["momentum", "dampening", "nesterov"], "Adam": ["eps", "amsgrad"], "AdamW": ["eps", "amsgrad"],
    "NAdam": ["eps", "momentum_decay", "decoupled_weight_decay"], "RAdam": ["eps", "decoupled_weight_decay"],
    "RMSprop": ["alpha", "eps", "momentum", "centered"], "Adagrad": ["lr_decay", "eps", "initial_accumulator_value"],
}


def add_optimizers(folder):
    """Cases of optimizers: five steps, with each of PyTorch's options, for each of three shapes."""
    for info in optim_db:
        name = info.optim_cls.__name__
        if name not in OPTIMIZERS:
            continue
        for (i, sample), shape, dtype in itertools.product(enumerate(info.optim_inputs_func("cpu")), [(), (7,), (3, 4)], TYPES):
            options = {key: float(x) if isinstance(x, torch.Tensor) else x for key, x in sample.kwargs.items()}
            opinfo_cases.start_generators()
            type_name, ending, rtol, atol = TYPES[dtype]
            numbers = [torch.randn(shape, dtype=torch.float64).to(dtype) for _ in range(6)]
            exact = opinfo_cases.started(numbers[0].double(), True)
            optimizer = info.optim_cls([exact], **options)
            for gradient in numbers[1:]:
                exact.grad = gradient.double()
                optimizer.step()
            group = optimizer.param_groups[0]
            attributes = {key: group[key] for key in ["lr", "weight_decay", "maximize", *OPTIMIZERS[name]] if key in group}
            attributes |= dict(zip(["beta1", "beta2"], group.get("betas", ())))
            shown = "x".join(map(str, shape)) or "number"
            folder.cases.append({
                "id": f"opinfo.optim_{name.lower()}.{shown}.o{i:03}.{ending}", "op": f"optim_{name.lower()}", "dtype": type_name,
                "attrs": attributes, "inputs": list(map(folder.add, numbers)), "outputs": [folder.add(exact.to(dtype))],
                "grad_output": None, "grad_inputs": [None] * len(numbers), "rtol": rtol, "atol": atol,
                "source": f"torch {torch.__version__} {name}, optimizer input {i}", "tags": []})


def all_samples(op):
    """PyTorch's reference inputs, its sample inputs among them."""
    opinfo_cases.start_generators()
    options = opinfo_cases.options(op)
    try:
        yield from op.info.reference_inputs(**options)
    except ValueError:  # some of where() have gradients of conditions
        yield from op.info.sample_inputs(**options)


def with_arrays(op, sample):
    """The sample with arrays without axes in place of numbers that are inputs."""
    def of(name, x):
        return torch.tensor(x, dtype=torch.float64) if name in op.inputs and type(x) in (int, float) else x

    names = iter(op.order)
    sample.input = of(next(names), sample.input)
    sample.args = tuple(of(next(names, None), x) for x in sample.args)
    sample.kwargs = {name: of(name, x) for name, x in sample.kwargs.items()}
    return sample


def samples_of(op):
    """(name, source, inputs, attributes) of the samples that the op takes; None for one that it does not."""
    for i, sample in enumerate(all_samples(op)):
        sample = with_arrays(op, sample)
        name, source = f"r{i:03}", f"reference input {i}"
        try:
            found = op.arguments(sample)
        except TypeError:
            found = None
        taken = found and op.wanted(*found) and all(x is None or not x.is_complex() for x in found[0].values())
        yield (name, source, *found) if taken else None


class Folder:
    """cases.json and the arrays that it names."""

    def __init__(self, path):
        self.path, self.cases = pathlib.Path(path), []
        (self.path / "data").mkdir(parents=True, exist_ok=True)

    def add(self, x):
        if x is None:
            return None
        x = x.to(torch.int64) if x.dtype in (torch.int32, torch.int16, torch.int8, torch.uint8) else x
        array = numpy.ascontiguousarray(x.detach().numpy(force=True)).reshape(tuple(x.shape))
        name = f"data/{hashlib.sha256(array.tobytes() + str((array.dtype, array.shape)).encode()).hexdigest()[:20]}.npy"
        with open(self.path / name, "wb") as file:
            numpy.lib.format.write_array(file, array, version=(1, 0))
        return name


def weight_of(x):
    """A number for each element: sin(3 i + 1)."""
    return (3 * torch.arange(x.numel(), dtype=torch.float64) + 1).sin().to(x.dtype).reshape(x.shape)


def second(op, inputs, attributes, dtype, seeds, as_stored):
    """(names of inputs with a weight, derivatives by the inputs, derivatives by the seeds) in a type, or None."""
    leaves = {name: opinfo_cases.started(x.to(dtype) if x is not None and x.is_floating_point() else x,
                                         x is not None and x.is_floating_point() and x.requires_grad)
              for name, x in inputs.items()}
    outputs = op.results(leaves, attributes)
    moving = [k for k, y in enumerate(outputs) if y.requires_grad]
    by = [x for x in leaves.values() if x is not None and x.requires_grad]
    if not moving or not by:
        return None
    given = [seeds(k, outputs[k]).to(dtype).requires_grad_() for k in moving]
    first = torch.autograd.grad([outputs[k] for k in moving], by, given, create_graph=True, allow_unused=True)
    total = sum((g * weight_of(g).to(as_stored).to(g.dtype)).sum() for g in first if g is not None)
    if not isinstance(total, torch.Tensor) or not total.requires_grad:
        return None
    found = torch.autograd.grad(total, [*by, *given], allow_unused=True)
    filled = [torch.zeros_like(x) if g is None else g for x, g in zip([*by, *given], found)]
    numbers = iter(filled)
    of_inputs = {name: next(numbers) if x is not None and x.requires_grad else None for name, x in leaves.items()}
    of_seeds = dict(zip(moving, numbers))
    return of_inputs, of_seeds


def add_second(op, folder, case, inputs, attributes, dtype):
    """Adds the derivatives of gradients, where PyTorch has them and is sure of them."""
    _, _, rtol, atol = TYPES[dtype]
    exact = {k: x if x is None or not x.is_floating_point()
             else x.detach().to(dtype).to(torch.float64).requires_grad_(x.requires_grad) for k, x in inputs.items()}
    seeds = opinfo_cases.seed(dtype)
    try:
        wanted = second(op, exact, attributes, torch.float64, seeds, dtype)
        in_type = second(op, exact, attributes, dtype, seeds, dtype) if dtype == torch.float32 else wanted
    except RuntimeError:
        return
    if wanted is None:
        return
    off = max((excess(g, w.to(dtype), rtol, atol)
               for got, want in zip(in_type, wanted) for g, w in zip(got.values(), want.values()) if w is not None), default=0)
    scale = max(1.0, 4 * off)
    if scale > opinfo_cases.MOST_SCALE:
        return
    of_inputs, of_seeds = wanted
    outputs = len(case["outputs"])
    case["second"] = {
        "weights": [folder.add(weight_of(g).to(dtype)) if g is not None else None for g in of_inputs.values()],
        "grad_inputs": [folder.add(g.to(dtype)) if g is not None else None for g in of_inputs.values()],
        "grad_seeds": [folder.add(of_seeds[k].to(dtype)) if k in of_seeds else None for k in range(outputs)],
        "rtol": rtol * scale, "atol": atol * scale}


def every_sample():
    """(name, source, op, inputs, attributes) of all ops and modules; None for one that no op takes."""
    for op in [*OPS, *MORE, *FURTHER]:
        if op.info is not None:
            for sample in samples_of(op):
                yield (*sample[:2], op, *sample[2:]) if sample else None
    yield from module_samples()


def write(path):
    """Writes all cases; returns how many, and how many have derivatives of gradients."""
    left_out = collections.Counter()
    folder = Folder(path)
    opinfo_cases.MOST_ELEMENTS = MOST_ELEMENTS
    for sample in every_sample():
        if sample is None:
            left_out["another signature"] += 1
            continue
        name, source, op, inputs, attributes = sample
        if sum(x.numel() for x in inputs.values() if x is not None) > MOST_ELEMENTS:
            left_out["too large"] += 1
            continue
        for dtype in TYPES:
            try:
                why = opinfo_cases.case(op, folder, name, source, inputs, attributes, dtype)
            except RuntimeError:
                why = "PyTorch refuses it"
            if why:
                left_out["PyTorch is far off" if why.startswith("PyTorch is off") else why] += 1
                continue
            folder.cases[-1]["source"] = f"torch {torch.__version__} {op.source}, {source}"
            add_second(op, folder, folder.cases[-1], inputs, attributes, dtype)
    add_optimizers(folder)
    (folder.path / "cases.json").write_text("[\n" + ",\n".join(map(json.dumps, folder.cases)) + "\n]\n")
    counts = len(folder.cases), sum("second" in case for case in folder.cases)
    print("{} cases, {} with derivatives of gradients".format(*counts))
    for why, count in left_out.most_common():
        print(f"left out: {count} samples, {why}")
    return counts


def differences(path, conformance):
    """The ids of the cases that fail."""
    run = subprocess.run([conformance, path], capture_output=True, text=True)
    if run.returncode not in (0, 1):
        sys.exit(f"{conformance} failed: {run.stderr}")
    (pathlib.Path(path) / "failures.txt").write_text(run.stdout)
    print(run.stdout.splitlines()[-1])
    return [line.split()[1] for line in run.stdout.splitlines() if line.startswith("FAILED")]


def listed():
    """What op_database.md says: numbers of cases, and of those that differ, op -> (in double, in float)."""
    text = (HERE / "op_database.md").read_text()
    counts = map(int, re.search(r"(\d+) cases, (\d+) with", text).groups())
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \|", text, re.M)
    return tuple(counts), {op: (int(double), int(single)) for op, double, single in rows}


def main(path, conformance):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    counts, known = listed()
    add_functions_of_inputs(subprocess.run([conformance, "--ops"], capture_output=True, text=True, check=True).stdout.split())
    written = write(path)
    # a processor may round some of PyTorch's numbers so far off that they count for nothing
    failed = any(now < 0.99 * wanted for now, wanted in zip(written, counts))
    if failed:
        print(f"op_database.md lists {counts[0]} cases, {counts[1]} with derivatives of gradients")
    found = collections.Counter((case.split(".")[1], case.endswith(".f64")) for case in differences(path, conformance))
    for op in sorted({op for op, _ in found} | set(known)):
        now = (found[op, True], found[op, False])
        wanted = known.get(op, (0, 0))
        if now == wanted:
            continue
        failed = failed or now[0] > wanted[0] or now[1] > wanted[1]
        print(f"{op}: {now[0]} cases in double and {now[1]} in float differ, op_database.md lists {wanted[0]} and {wanted[1]}")
    sys.exit(failed)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    main(*sys.argv[1:])
