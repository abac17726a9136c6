#!/usr/bin/env python3
"""Does the training runs of tests/data/training.tar.xz again: make_cases.py FOLDER

FOLDER is the unpacked archive, made by PyTorch 1.13.1. The installed PyTorch starts from its weights and batches, and what
it gives takes the place of the gradients, losses and weights; the tolerances stay.
"""

import json
import math
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as F

folder = pathlib.Path(sys.argv[1])
expected = json.loads((folder / "expected.json").read_text())
config, names = expected["config"], expected["model"]["parameters"]
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
torch.set_num_threads(1)


def load(file):
    return torch.from_numpy(numpy.load(folder / f"{file}.npy"))


def save(file, tensor):
    tensor = tensor.detach().numpy()
    path = folder / f"{file}.npy"
    old = numpy.load(path)
    assert tensor.shape == old.shape and tensor.dtype == old.dtype, file
    numpy.save(path, tensor)


def attention(x, p, real):
    batch, seq, d = x.shape
    q, k, v = (F.linear(x, p[f"W_{i}.weight"]).view(batch, seq, config["heads"], -1).transpose(1, 2) for i in "qkv")
    scores = q @ k.transpose(-2, -1) / math.sqrt(d // config["heads"])
    weights = scores.masked_fill(~real[:, None, None, :], -1e9).softmax(-1)
    return F.linear((weights @ v).transpose(1, 2).reshape(batch, seq, d), p["W_o.weight"])


def norm(x, p, name):
    return F.layer_norm(x, x.shape[-1:], p[f"{name}.weight"], p[f"{name}.bias"])


def linear(x, p, name):
    return F.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])


def logits_of(weights, ids):
    real = ids != 0
    x = weights["tok_emb.weight"][ids] + weights["pos_emb.weight"]
    for layer in range(config["layers"]):
        start = f"blocks.{layer}."
        p = {name.removeprefix(start): w for name, w in weights.items() if name.startswith(start)}
        x = norm(x + attention(x, p, real), p, "ln1")
        x = norm(x + linear(linear(x, p, "linear1").relu(), p, "linear2"), p, "ln2")
    counted = real[..., None].to(x.dtype)
    return linear((x * counted).sum(1) / counted.sum(1), weights, "classifier")


def initial_weights(dtype):
    return {name: load(f"init/{name}").to(dtype).requires_grad_() for name in names}


def first_step():
    """In double."""
    weights = initial_weights(torch.float64)
    logits = logits_of(weights, tokens[0])
    F.cross_entropy(logits, labels[0]).backward()
    save("step0/logits", logits)
    for name, weight in weights.items():
        save(f"step0/grad_{name}", weight.grad)


def train(name, options, dtype):
    kind = str(dtype).removeprefix("torch.")
    weights = initial_weights(dtype)
    optimizer = OPTIMIZERS[name](weights.values(), **options)
    losses = []
    for step in range(config["steps"]):
        batch = step % config["batches"]
        optimizer.zero_grad()
        loss = F.cross_entropy(logits_of(weights, tokens[batch]), labels[batch])
        loss.backward()
        losses.append(loss.detach())
        optimizer.step()
    save(f"{name}/loss_{kind}", torch.stack(losses))
    for parameter, weight in weights.items():
        save(f"{name}/final_{kind}/{parameter}", weight)


tokens, labels = load("data/tokens"), load("data/labels")
first_step()
for name, options in expected["optimizers"].items():
    for dtype in (torch.float32, torch.float64):
        train(name, {option: value for option, value in options.items() if option != "note"}, dtype)
expected["produced_by"] = f"PyTorch {torch.__version__}"
(folder / "expected.json").write_text(json.dumps(expected))
print(f"{expected['produced_by']}: {2 * len(expected['optimizers'])} training runs")
