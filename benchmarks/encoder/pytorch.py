"""The encoder in PyTorch 2 as its users write it, eager or compiled, which bench_encoder measures beside xgrad's."""

import contextlib

import torch
from torch import nn
from torch.nn import functional as F

from weights import load
from worker import serve

PAD_ID = 0


class Layer(nn.Module):
    """A block; its modules are in the order of xgrad's parameters."""

    def __init__(self, size):
        super().__init__()
        d_model, d_ff = size["d_model"], size["d_ff"]
        self.heads = size["heads"]
        self.w_q, self.w_k, self.w_v, self.out_proj = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(size["dropout"])

    def attend(self, x, mask):
        q, k, v = (w(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        dropout = self.dropout.p if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        return self.out_proj(mixed.transpose(1, 2).flatten(2))

    def forward(self, x, mask):
        y = self.norm1(x + self.dropout(self.attend(x, mask)))
        return self.norm2(y + self.dropout(self.linear2(self.dropout(F.relu(self.linear1(y))))))


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.token_embedding = nn.Embedding(size["vocab"], size["d_model"])
        self.position_embedding = nn.Embedding(size["seq"], size["d_model"])
        self.layers = nn.ModuleList(Layer(size) for _ in range(size["layers"]))
        self.class_head = nn.Linear(size["d_model"], size["classes"])

    def forward(self, ids):
        mask = ids.ne(PAD_ID)[:, None, None, :]
        x = self.token_embedding(ids) + self.position_embedding.weight
        for layer in self.layers:
            x = layer(x, mask)
        return self.class_head(x.mean(1))


def start(request):
    torch.set_num_threads(request["threads"])
    size = request["size"]
    model = Model(size)
    load(list(model.parameters()), request["parameters"], request["weights"])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    called = torch.compile(model) if request["compile"] else model
    precision = torch.autocast("cpu", torch.bfloat16) if request["autocast"] else contextlib.nullcontext()
    ids = torch.tensor(request["ids"]).view(size["batch"], size["seq"])
    labels = torch.tensor(request["labels"])

    def logits(training):
        if model.training != training:
            model.train(training)
        with precision:
            return called(ids)

    def step():
        optimizer.zero_grad()
        F.cross_entropy(logits(training=True).float(), labels).backward()
        optimizer.step()

    @torch.inference_mode()
    def forward():
        return logits(training=False)

    library = f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"
    return {"library": library, "loss": F.cross_entropy(forward().float(), labels).item()}, {"step": step, "forward": forward}


serve(start)
