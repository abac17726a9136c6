"""A GPT in PyTorch 2 as its users write it, eager or compiled, which bench_gpt measures beside xgrad's."""

import contextlib
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "encoder"))
from worker import serve

POSITIONS = 1024


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        d_model, bias = size["d_model"], size["biases"]
        self.heads = size["heads"]
        self.ln_1, self.ln_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model, bias=bias), nn.Linear(d_model, d_model, bias=bias)
        self.up, self.down = nn.Linear(d_model, 4 * d_model, bias=bias), nn.Linear(4 * d_model, d_model, bias=bias)

    def forward(self, x, cache=None):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.ln_1(x)).chunk(3, -1))
        is_causal = True
        if cache is not None:
            is_causal = not cache  # a token behind others sees them all
            if cache:
                k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
            cache[:] = [k, v]
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        d_model = size["d_model"]
        self.wte, self.wpe = nn.Embedding(size["vocab"], d_model), nn.Embedding(POSITIONS, d_model)
        self.h = nn.ModuleList(Block(size) for _ in range(size["layers"]))
        self.ln_f = nn.LayerNorm(d_model)

    def hidden(self, ids, first=0, caches=None):
        x = self.wte(ids) + self.wpe(torch.arange(first, first + ids.shape[1]))
        for block, cache in zip(self.h, caches or [None] * len(self.h)):
            x = block(x, cache)
        return self.ln_f(x)

    def forward(self, ids, targets):
        logits = F.linear(self.hidden(ids), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    def next_logits(self, ids, first, caches):
        return F.linear(self.hidden(ids, first, caches)[:, -1], self.wte.weight)


NAMES = {"attn.c_proj": "out", "mlp.c_fc": "up", "mlp.c_proj": "down"}


def load(model, saved, path):
    """Reads the parameters that xgrad saved: queries, keys and values are three matrices there."""
    sizes = [torch.Size(parameter["shape"]).numel() for parameter in saved]
    numbers = torch.from_file(path, size=sum(sizes), dtype=torch.float32)
    state, parts = {}, {}
    for parameter, values in zip(saved, numbers.split(sizes)):
        name = parameter["name"].removeprefix("transformer.")
        for theirs, ours in NAMES.items():
            name = name.replace(theirs, ours)
        values = values.view(parameter["shape"]).clone()
        if "attn." in name:
            layer, kind = name.split("attn.")[0], name.split(".")[-1]
            parts.setdefault(f"{layer}qkv.{kind}", []).append(values)
        else:
            state[name] = values
    state.update({name: torch.cat(values) for name, values in parts.items()})
    model.load_state_dict(state)


def library():
    return f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"


def start_training(request, model):
    size = request["size"]
    load(model, request["parameters"], request["weights"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    called = torch.compile(model) if request["compile"] else model
    precision = torch.autocast("cpu", torch.bfloat16) if request["autocast"] else contextlib.nullcontext()
    ids, targets = (torch.tensor(request[name]).view(size["batch"], size["seq"]) for name in ("ids", "targets"))

    def loss():
        with precision:
            return called(ids, targets)

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    with torch.no_grad():
        first = loss().item()
    return {"library": library(), "loss": first}, {"step": step}


def start_decoding(request, model):
    size = request["size"]
    model.eval()
    if request["bfloat16"]:
        model = model.bfloat16()
    prompt, token = torch.randint(size["vocab"], (1, size["seq"])), torch.zeros(1, 1, dtype=torch.long)
    written = {"length": POSITIONS, "caches": []}

    @torch.inference_mode()
    def read_prompt():
        caches = [[] for _ in model.h]
        model.next_logits(prompt, 0, caches)
        return caches

    @torch.inference_mode()
    def write_token():
        if written["length"] == POSITIONS:
            written.update(length=size["seq"], caches=read_prompt())
        model.next_logits(token, written["length"], written["caches"])
        written["length"] += 1

    return {"library": library()}, {"prompt": read_prompt, "token": write_token}


def start(request):
    torch.set_num_threads(request["threads"])
    model = Model(request["size"])
    return start_decoding(request, model) if request["decoding"] else start_training(request, model)


serve(start)
