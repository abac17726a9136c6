"""Computes the programs of random_programs with PyTorch: a line of JSON in, a line out."""

import itertools
import json
import math
import sys
import warnings

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit(3)

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
warnings.simplefilter("ignore")  # of what is meant, such as variances of one element


def dims(x, a):
    axes = a["dim"]
    return tuple(range(x.dim())) if axes is None else axes


def var(x, a):
    axes = dims(x[0], a)
    axes = [axes] if isinstance(axes, int) else list(axes)
    return torch.var(x[0].reshape(1) if x[0].dim() == 0 else x[0], dim=axes or [0], unbiased=a["correction"] == 1,
                     keepdim=a["keepdim"] and x[0].dim() > 0)


def std(x, a):
    return var(x, a).sqrt()


def norm(x, a):
    return torch.linalg.vector_norm(x[0], float(a["p"]), dims(x[0], a), a["keepdim"])


def prod(x, a):
    return torch.prod(x[0]) if a["dim"] is None else torch.prod(x[0], a["dim"], a["keepdim"])


def sliced(x, a):
    for dim, start, end, step in zip(a["dims"], a["starts"], a["ends"], a["steps"]):
        index = [slice(None)] * x[0].dim()
        index[dim] = slice(start, end, step)
        x = [x[0][tuple(index)]]
    return x[0]


def pad(x, a):
    if a["mode"] == "constant":
        return F.pad(x[0], a["pad"], value=a["value"])
    return F.pad(x[0], a["pad"], a["mode"])


def index(x, a):
    items = zip(a["starts"], a["ends"], a["steps"])
    return x[0][tuple(start if step == 0 else slice(start, end, step) for start, end, step in items)]


def linear(x, a):
    if x[1].dim() == 1:
        return x[0] @ x[1]
    return x[0] @ x[1].T + (0 if x[2] is None else x[2])


def gemm(x, a):
    left, right = (m.T if a[turned] else m for m, turned in zip(x, ("transA", "transB")))
    y = a["alpha"] * (left @ right)
    return y if x[2] is None else y + a["beta"] * x[2]


def layer_norm(x, a, weight, bias):
    """Of single ops: the third derivative of F.layer_norm is wrong in PyTorch 1.13 and 2.13, as differences tell."""
    axes = tuple(range(-len(a["normalized_shape"]), 0))
    x = x - x.mean(axes, keepdim=True)
    y = x * torch.rsqrt((x * x).mean(axes, keepdim=True) + a["eps"])
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def rms_norm(x, a):
    axes = tuple(range(-len(a["normalized_shape"]), 0))
    y = x[0] * torch.rsqrt((x[0] * x[0]).mean(axes, keepdim=True) + a["eps"])
    return y if x[1] is None else y * (x[1] + a["offset"])


def rotary(x, a):
    pairs = x[1].shape[-1]
    heads = x[0].unflatten(-1, (a["num_heads"], x[0].shape[-1] // a["num_heads"]))
    turned, rest = heads[..., :2 * pairs], heads[..., 2 * pairs:]
    cos, sin = x[1].unsqueeze(-2), x[2].unsqueeze(-2)
    if a["interleaved"]:
        u, v = turned[..., 0::2], turned[..., 1::2]
        turned = torch.stack([u * cos - v * sin, v * cos + u * sin], -1).flatten(-2)
    else:
        u, v = turned[..., :pairs], turned[..., pairs:]
        turned = torch.cat([u * cos - v * sin, v * cos + u * sin], -1)
    return torch.cat([turned, rest], -1).flatten(-2)


gates = {"sigmoid": torch.sigmoid, "relu": torch.relu, "silu": F.silu, "gelu": F.gelu,
         "gelu_tanh": lambda g: F.gelu(g, approximate="tanh")}


def masked_fill(x, a):
    x, mask = torch.broadcast_tensors(*x)
    return x.masked_fill(mask, float(a["value"]))


def over_classes(loss, x, a, options):
    """Of a matrix: with more axes PyTorch's second derivative refuses some orders of them in memory."""
    scores, target, weight = x
    shape = None
    if scores.dim() > 2:
        shape = scores.shape[:1] + scores.shape[2:]
        scores = scores.movedim(1, -1).flatten(0, -2)
        target = target.movedim(1, -1).flatten(0, -2) if target.is_floating_point() else target.flatten()
    y = loss(scores, target, weight, reduction=a["reduction"], **options)
    return y if shape is None or a["reduction"] != "none" else y.reshape(shape)


def nll_loss(x, a):
    return over_classes(F.nll_loss, x, a, {"ignore_index": a["ignore_index"]})


def cross_entropy(x, a):
    options = {"label_smoothing": a["label_smoothing"]}
    if not x[1].is_floating_point():
        options["ignore_index"] = a["ignore_index"]
    return over_classes(F.cross_entropy, x, a, options)


def linear_cross_entropy(x, a):
    logits = linear([x[0], x[1], x[3]], {}).reshape(x[2].numel(), len(x[1]))
    loss = cross_entropy([logits, x[2].flatten(), x[4]], a)
    return loss.reshape(x[2].shape) if a["reduction"] == "none" else loss


def mse_loss(x, a):
    return F.mse_loss(*torch.broadcast_tensors(*x), reduction=a["reduction"])


def l1_loss(x, a):
    return F.l1_loss(*torch.broadcast_tensors(*x), reduction=a["reduction"])


def smooth_l1_loss(x, a):
    return F.smooth_l1_loss(*torch.broadcast_tensors(*x), reduction=a["reduction"], beta=a["beta"])


def huber_loss(x, a):
    """Of single ops: the third derivative of F.huber_loss fails in PyTorch 1.13 where the second is zero."""
    d, delta = x[0] - x[1], a["delta"]
    y = torch.where(d.abs() <= delta, d * d / 2, delta * (d.abs() - delta / 2))
    return {"none": lambda: y, "mean": y.mean, "sum": y.sum}[a["reduction"]]()


def binary_cross_entropy(x, a):
    logits, target, weight, pos_weight = x
    return F.binary_cross_entropy_with_logits(logits, target, weight, pos_weight=pos_weight, reduction=a["reduction"])


def probability_cross_entropy(x, a):
    """Of single ops: F.binary_cross_entropy has no third derivative."""
    p, target, weight = x
    return reduced_losses(-(target * p.log() + (1 - target) * torch.log1p(-p)) * (1 if weight is None else weight), a)


def reduced_losses(y, a):
    return {"none": lambda: y, "mean": y.mean, "sum": y.sum}[a["reduction"]]()


def multi_margin_loss(x, a):
    """Of single ops: F.multi_margin_loss has no second derivative."""
    scores, target, weight = x
    over = (a["margin"] - scores.gather(-1, target[..., None]) + scores).clamp(min=0) ** a["p"]
    losses = over.masked_fill(F.one_hot(target, scores.shape[-1]).bool(), 0).sum(-1) / scores.shape[-1]
    return reduced_losses(losses if weight is None else losses * weight[target], a)


def ctc_loss(x, a):
    """Of single ops: F.ctc_loss has no second derivative, and the first one of log_softmax alone."""
    p, targets, _, lengths = x
    batch = p if p.dim() == 3 else p[:, None]
    losses = [ctc_of_sample(batch[:, n], targets[n, :length].tolist(), a["blank"]) for n, length in enumerate(lengths.tolist())]
    y = torch.stack(losses) if losses else p.sum((0, 2))
    if a["reduction"] == "mean":
        return (y / lengths.clamp(min=1)).mean()
    return y if a["reduction"] == "none" and p.dim() == 3 else y.sum()


def ctc_of_sample(p, labels, blank):
    """Of all steps (T, C): the logarithms of beginnings of paths at each place, None where there are none."""
    places = [blank]
    for label in labels:
        places += [label, blank]
    row = [None] * len(places)
    for t in range(len(p)):
        before, row = row, []
        for s, c in enumerate(places):
            skips = s > 1 and c != blank and c != places[s - 2]
            coming = [before[s - k] for k in range(3 if skips else 2) if s >= k and before[s - k] is not None]
            start = p[0, c] if t == 0 and s < 2 else None
            row.append(torch.stack(coming).logsumexp(0) + p[t, c] if coming else start)
    ends = [one for one in row[-2:] if one is not None]
    return -torch.stack(ends).logsumexp(0) if ends else p.sum()


def attention(q, k, v, mask, a):
    """The output and the weights; zeros where a query may attend to nothing."""
    heads, first = a["num_heads"], a["first_query"] or 0
    if a["num_keys"] is not None:
        k, v = k[..., :a["num_keys"], :], v[..., :a["num_keys"], :]
    if heads:
        kv_heads = a["num_kv_heads"] or heads
        q, k, v = (x.unflatten(-1, (n, x.shape[-1] // n)).transpose(-3, -2)
                   for x, n in zip((q, k, v), (heads, kv_heads, kv_heads)))
        k, v = (x.repeat_interleave(heads // kv_heads, -3) for x in (k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if a["scale"] is None else a["scale"]
    scores = q @ k.transpose(-2, -1) * scale
    if a["softcap"] is not None:
        scores = a["softcap"] * torch.tanh(scores / a["softcap"])
    allowed = torch.ones(scores.shape, dtype=torch.bool)
    if mask is not None and mask.dtype == torch.bool:
        allowed = allowed & mask
    elif mask is not None:
        scores = scores + mask
    if a["is_causal"]:
        allowed = allowed.tril(first)
    if a["window_left"] is not None:
        allowed = allowed.triu(first - a["window_left"])
    if a["window_right"] is not None:
        allowed = allowed.tril(first + a["window_right"])
    some = allowed.any(-1, keepdim=True)
    scores = scores.masked_fill(~allowed & some, -math.inf)
    weights = torch.softmax(scores, -1) * some
    output = weights @ v
    return [output.transpose(-3, -2).flatten(-2) if heads else output, weights]


def qkv_attention(x, a):
    heads = a["num_heads"] or 1
    kv_heads = a["num_kv_heads"] or heads
    width = x[0].shape[-1] // (heads + 2 * kv_heads)
    return attention(*x[0].split([heads * width, kv_heads * width, kv_heads * width], -1), x[1], a)[0]


def self_attention(x, a):
    q, k, v = (linear([x[0], x[i], x[i + 1]], {}) for i in (1, 3, 5))
    return attention(q, k, v, x[7], a)[0]


def embedding(x, a):
    """The second derivative of F.embedding refuses no ids."""
    return F.embedding(x[1], x[0], a["padding_idx"]) if x[1].numel() else x[0][x[1]]


def batch_norm(x, a, training):
    """Of single ops, as layer_norm."""
    x, weight, bias, mean, variance = x
    shape = [1, -1] + [1] * (x.dim() - 2)
    axes = ([0] if "training" in a else []) + list(range(2, x.dim()))
    if training:
        x = x - x.mean(axes, keepdim=True)
        y = x * torch.rsqrt((x * x).mean(axes, keepdim=True) + a["eps"])
    else:
        y = (x - mean.reshape(shape)) * torch.rsqrt(variance + a["eps"]).reshape(shape)
    y = y if weight is None else y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def group_norm(x, a):
    x, weight, bias = x
    groups = x.reshape(x.shape[0], a["num_groups"], -1)
    y = layer_norm(groups, {"normalized_shape": groups.shape[-1:], "eps": a["eps"]}, None, None).reshape(x.shape)
    shape = [1, -1] + [1] * (x.dim() - 2)
    y = y if weight is None else y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def conv_transpose(f, x, a):
    """With the ends cut and added afterwards: PyTorch's second derivative refuses an output_padding."""
    y = f(*x[:2], stride=a["stride"], groups=a["groups"], dilation=a["dilation"])
    y = F.pad(y, [length for longer in reversed(a["output_padding"]) for length in (0, longer)])
    for axis, padding in enumerate(a["padding"], y.dim() - len(a["padding"])):
        y = y.narrow(axis, padding, y.shape[axis] - 2 * padding)
    return y if x[2] is None else y + x[2].reshape([-1] + [1] * len(a["stride"]))


def max_pool(f, x, a):
    return f(x[0], a["kernel_size"], a["stride"], a["padding"], a["dilation"], a["ceil_mode"], return_indices=True)


def embedding_bag(x, a):
    """Of single ops: the second derivative of F.embedding_bag is missing for maxima."""
    rows = x[0][x[1]] if x[3] is None else x[0][x[1]] * x[3].unsqueeze(-1)
    return rows.amax(1) if a["mode"] == "max" else getattr(rows, a["mode"])(1)


def solve(x, a):
    """Of matrices in equal batches: the derivative of torch.linalg.solve refuses some others."""
    left, right = x
    of_vectors = right.shape == left.shape[:-1]
    if of_vectors:
        right = right.unsqueeze(-1)
    batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    y = torch.linalg.solve(left, right.expand(*batch, *right.shape[-2:]), left=a["left"])
    return y.squeeze(-1) if of_vectors else y


def clamp(x, a):
    if len(x) > 1:
        return torch.clamp(*torch.broadcast_tensors(*[b for b in x if b is not None]))
    return torch.clamp(x[0], a["min"], a["max"])


def scatter(x, a):
    return x[0].scatter(a["dim"], x[1], x[2] if len(x) > 2 else float(a["value"]))


def median(x, a):
    return x[0].median() if a["dim"] is None else x[0].median(a["dim"], a["keepdim"])


def quantile(x, a):
    if a["dim"] is None:
        return torch.quantile(x[0], a["q"])
    return torch.quantile(x[0], torch.tensor([a["q"], a["second"]]), a["dim"], a["keepdim"],
                          interpolation=a["interpolation"])


def unique(x, a):
    return torch.unique(x[0].detach(), dim=a["dim"], return_inverse=True, return_counts=True)


def with_gradient(value, y):
    """The value, with y's gradient."""
    return y + (value - y).detach()


def hardsigmoid(x, a):
    """PyTorch has no third derivative; its first has 1 / 6 in float."""
    return with_gradient(F.hardsigmoid(x[0]), F.hardtanh(x[0], -3, 3) * torch.tensor(1 / 6).float().double())


def celu(x, a):
    """PyTorch's derivatives have 1 / alpha in float: the first as a factor of the exponential, too."""
    steepness = 1 / torch.tensor(a["alpha"]).float().double()
    below = a["alpha"] * torch.expm1(torch.clamp(x[0], max=0) * steepness)
    return with_gradient(F.celu(x[0], a["alpha"]), torch.where(x[0] > 0, x[0], below))


def cumprod(x, a):
    """Of single products: the derivatives of torch.cumprod take n, n^2, n^3, ... scans of n elements."""
    products = list(itertools.accumulate(x[0].unbind(a["dim"]), torch.mul)) if x[0].dim() else []
    return torch.stack(products, a["dim"]) if products else x[0].clone()


def logcumsumexp(x, a):
    """Of single ops: the third derivative of torch.logcumsumexp is nan."""
    largest = x[0].detach().amax() if x[0].numel() else 0
    return torch.log(torch.cumsum(torch.exp(x[0] - largest), a["dim"])) + largest


def cosine_similarity(x, a):
    """Of single ops: the second derivative of F.cosine_similarity takes the length for a constant."""
    return (F.normalize(x[0], dim=a["dim"]) * F.normalize(x[1], dim=a["dim"])).sum(a["dim"])


def cdist(x, a):
    """Of single ops: torch.cdist has no second derivative for some p."""
    return torch.linalg.vector_norm(x[0].unsqueeze(-2) - x[1].unsqueeze(-3), a["p"], -1)


def recurrent(name):
    """x, h0, c0 of an lstm, lengths and the weights."""
    states = 2 if name == "lstm" else 1

    def of_layers(x, a):
        passes = a["num_layers"] * (2 if a["bidirectional"] else 1)
        width = a.get("proj_size") or a["hidden_size"]
        zeros = [torch.zeros(passes, x[0].shape[0], n) for n in (width, a["hidden_size"])]
        state = tuple(zero if given is None else given for given, zero in zip(x[1:1 + states], zeros))
        state = state if states == 2 else state[0]
        layer = getattr(torch._VF, name + ("_" + a["nonlinearity"] if name == "rnn" else ""))
        lengths, weights = x[1 + states], x[2 + states:]
        options = (a["bias"], a["num_layers"], 0.0, False, a["bidirectional"])
        if lengths is None:
            return list(layer(x[0], state, weights, *options, True))
        order = lengths.argsort(descending=True)
        state = tuple(s[:, order] for s in state) if states == 2 else state[:, order]
        packed = torch.nn.utils.rnn.pack_padded_sequence(x[0][order], lengths[order], batch_first=True)
        y, *last = layer(packed.data, packed.batch_sizes, state, weights, *options)
        packed = torch.nn.utils.rnn.PackedSequence(y, packed.batch_sizes)
        y, _ = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, total_length=x[0].shape[1])
        back = order.argsort()
        return [y[back], *(s[:, back] for s in last)]

    return of_layers


# Functions that PyTorch does not have by this name, with these inputs in this order and these attributes as keywords, or whose
# derivatives are wrong there.
ops = {
    **{name: recurrent(name) for name in "rnn gru lstm".split()},
    "lerp": lambda x, a: torch.lerp(*torch.broadcast_tensors(*x)) if len(x) > 2 else torch.lerp(*x, a["weight"]),
    "hardsigmoid": hardsigmoid,
    "celu": celu,
    "softshrink": lambda x, a: F.softshrink(x[0], a["lambda"]),
    "hardshrink": lambda x, a: F.hardshrink(x[0], a["lambda"]),
    "polygamma": lambda x, a: torch.polygamma(a["n"], x[0]),
    "log_sigmoid": lambda x, a: F.logsigmoid(x[0]),
    "clamp": clamp,
    "pow": lambda x, a: torch.pow(x[0], float(a["other"]) if "other" in a else x[1]),
    "broadcast_to": lambda x, a: x[0].broadcast_to(a["shape"]),
    "sum_to": lambda x, a: x[0].sum_to_size(a["shape"]),
    "masked_fill": masked_fill,
    "linear": linear,
    "linear_relu": lambda x, a: torch.relu(linear(x, a)),
    "bfloat16_linear": lambda x, a: linear([x[0], x[1].float().bfloat16().to(x[0].dtype), x[2]], a),
    "gemm": gemm,
    "linear_map": lambda x, a: torch.cumsum(x[0], -1),
    "tensordot": lambda x, a: torch.tensordot(x[0], x[1], (a["dims_a"], a["dims_b"])),
    "einsum": lambda x, a: torch.einsum(a["equation"], x),
    "var": var,
    "std": std,
    "norm": norm,
    "prod": prod,
    "mT": lambda x, a: x[0].mT,
    "expand": lambda x, a: x[0].expand(a["shape"]),
    "cat": lambda x, a: torch.cat(x, a["dim"]),
    "stack": lambda x, a: torch.stack(x, a["dim"]),
    "split": lambda x, a: list(torch.split(x[0], a["sizes"], a["dim"])),
    "slice": sliced,
    "index": index,
    "index_select": lambda x, a: x[0].index_select(a["dim"], x[1]),
    "gather": lambda x, a: x[0].gather(a["dim"], x[1]),
    "embedding": embedding,
    "solve": solve,
    "diag": lambda x, a: (x[0].diagonal if x[0].dim() > 1 else x[0].diag_embed)(a["diagonal"]),
    "trace": lambda x, a: x[0].diagonal(0, -2, -1).sum(-1),
    "lstsq": lambda x, a: torch.linalg.pinv(x[0]) @ x[1],
    "repeat": lambda x, a: x[0].repeat(a["repeats"]),
    "pad": pad,
    "argmax": lambda x, a: x[0].argmax(a["dim"], a["keepdim"]),
    "argmin": lambda x, a: x[0].argmin(a["dim"], a["keepdim"]),
    "unique": unique,
    "median": median,
    "quantile": quantile,
    "scatter": scatter,
    "scatter_reduce": lambda x, a: x[0].scatter_reduce(a["dim"], x[1], x[2], a["reduce"],
                                                       include_self=a["include_self"]),
    "scatter_add": lambda x, a: x[0].scatter_add(a["dim"], x[1], x[2]),
    "index_add": lambda x, a: x[0].index_add(a["dim"], x[1], x[2]),
    "index_put": lambda x, a: x[0].index_put(tuple(x[2:]), x[1], a["accumulate"]),
    "cumprod": cumprod,
    "logcumsumexp": logcumsumexp,
    "cosine_similarity": cosine_similarity,
    "cdist": cdist,
    "layer_norm": lambda x, a: layer_norm(x[0], a, x[1], x[2]),
    "add_layer_norm": lambda x, a: layer_norm(x[0] + x[1], a, x[2], x[3]),
    "rms_norm": rms_norm,
    "rotary": rotary,
    "gated": lambda x, a: gates[a["function"]](x[0]) * x[1],
    "mse_loss": mse_loss,
    "l1_loss": l1_loss,
    "huber_loss": huber_loss,
    "smooth_l1_loss": smooth_l1_loss,
    "binary_cross_entropy_with_logits": binary_cross_entropy,
    "binary_cross_entropy": probability_cross_entropy,
    "soft_margin_loss": lambda x, a: reduced_losses(F.softplus(-x[1] * x[0], threshold=math.inf), a),
    "multi_margin_loss": multi_margin_loss,
    "ctc_loss": ctc_loss,
    "nll_loss": nll_loss,
    "cross_entropy": cross_entropy,
    "linear_cross_entropy": linear_cross_entropy,
    "scaled_dot_product_attention": lambda x, a: attention(*x, a)[0],
    "attention_with_weights": lambda x, a: attention(*x, a),
    "qkv_attention": qkv_attention,
    "self_attention": self_attention,
    "conv_transpose1d": lambda x, a: conv_transpose(F.conv_transpose1d, x, a),
    "conv_transpose2d": lambda x, a: conv_transpose(F.conv_transpose2d, x, a),
    "max_pool1d": lambda x, a: max_pool(F.max_pool1d, x, a),
    "max_pool2d": lambda x, a: max_pool(F.max_pool2d, x, a),
    "adaptive_max_pool1d": lambda x, a: F.adaptive_max_pool1d(x[0], a["output_size"], True),
    "adaptive_max_pool2d": lambda x, a: F.adaptive_max_pool2d(x[0], a["output_size"], True),
    "batch_norm": lambda x, a: batch_norm(x, a, a["training"]),
    "instance_norm": lambda x, a: batch_norm(x, a, a["use_input_stats"]),
    "group_norm": group_norm,
    "embedding_bag": embedding_bag,
}


def function(op):
    """What computes calls of an op: from inputs and attributes; None if PyTorch has no function of this name."""
    if op in ops:
        return ops[op]
    f = next((getattr(module, op) for module in (F, torch.linalg, torch) if hasattr(module, op)), None)

    def call(x, a):
        if "keepdim" in a:
            a = {**a, "dim": dims(x[0], a)}
        return f(*x, **{name: value for name, value in a.items() if value is not None and name != "other"})

    return f and call


def numbers(y):
    """The results of a call, which may be ids or a mask."""
    return [one if one.is_floating_point() else one.double() for one in (y if isinstance(y, (list, tuple)) else [y])]


def tensor(entry):
    kind = {"numbers": torch.float64, "ids": torch.int64, "mask": torch.bool}[entry["kind"]]
    x = torch.tensor(entry["elements"], dtype=kind).reshape(entry["shape"])
    return x.requires_grad_() if entry.get("requires_grad") else x


def plain(x):
    """JSON has no infinities; and PyTorch gives some zeros no memory before they are added to."""
    elements = [e if math.isfinite(e) else str(e) for e in (x.detach() + 0.0).reshape(-1).tolist()]
    return {"shape": list(x.shape), "elements": elements}


def computed(program):
    values = {name: tensor(entry) for name, entry in program["leaves"].items()}
    names = [name for name, x in values.items() if x.requires_grad]
    results = {}
    for step in program["steps"]:
        f = function(step["op"])
        if f is None:
            return {"unknown": step["op"]}
        inputs, attributes = [None if name is None else values[name] for name in step["in"]], step["attrs"]
        if "other" in attributes:  # a number in place of the second input
            inputs.append(torch.tensor(float(attributes["other"])))
        y = f(inputs, attributes)
        for name, x in zip(step["out"], numbers(y)):
            values[name] = results[name] = x
    loss, derivatives = values[program["loss"]], []
    for directions in program["directions"]:
        found = [None] * len(names)
        if loss.requires_grad:
            found = torch.autograd.grad(loss, [values[n] for n in names], create_graph=True, allow_unused=True)
        found = {n: torch.zeros_like(values[n]) if g is None else g for n, g in zip(names, found)}
        derivatives.append({n: plain(g) for n, g in found.items()})
        loss = sum(((g * tensor(directions[n])).sum() for n, g in found.items()), torch.tensor(0.0))
    return {"values": {name: plain(x) for name, x in results.items()}, "derivatives": derivatives}


print(torch.__version__, flush=True)
for line in sys.stdin:
    try:
        answer = computed(json.loads(line))
    except Exception as error:  # is told as what differs
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
