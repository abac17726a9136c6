"""BERT's sequence classifier in PyTorch 2 as its users write it, which bench_pretrained measures beside xgrad's."""

import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "encoder"))
from weights import load
from worker import serve

LABELS, DROPOUT, LEARNING_RATE, WEIGHT_DECAY, MAX_NORM, EPS = 2, 0.1, 2e-5, 0.01, 1, 1e-12


class Layer(nn.Module):
    """A layer; its modules are in the order of xgrad's parameters."""

    def __init__(self, size):
        super().__init__()
        hidden, wide = size["hidden_size"], size["intermediate_size"]
        self.heads = size["num_attention_heads"]
        self.query, self.key, self.value, self.out = (nn.Linear(hidden, hidden) for _ in range(4))
        self.norm1 = nn.LayerNorm(hidden, eps=EPS)
        self.up, self.down = nn.Linear(hidden, wide), nn.Linear(wide, hidden)
        self.norm2 = nn.LayerNorm(hidden, eps=EPS)
        self.dropout = nn.Dropout(DROPOUT)

    def attend(self, x, mask):
        q, k, v = (w(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for w in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=DROPOUT if self.training else 0.0)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def forward(self, x, mask):
        y = self.norm1(x + self.dropout(self.attend(x, mask)))
        return self.norm2(y + self.dropout(self.down(F.gelu(self.up(y)))))


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        hidden = size["hidden_size"]
        self.words = nn.Embedding(size["vocab_size"], hidden, padding_idx=0)
        self.positions = nn.Embedding(size["max_position_embeddings"], hidden)
        self.types = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=EPS)
        self.layers = nn.ModuleList(Layer(size) for _ in range(size["num_hidden_layers"]))
        self.pooler, self.classifier = nn.Linear(hidden, hidden), nn.Linear(hidden, LABELS)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, ids, mask):
        x = self.words(ids) + self.types.weight[0] + self.positions.weight[: ids.shape[1]]
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x, mask[:, None, None, :])
        return self.classifier(self.dropout(torch.tanh(self.pooler(x[:, 0]))))


def decay_groups(model):
    """Weights decay, biases and the parameters of LayerNorms do not: the one kind has two axes, the other one."""
    parameters = list(model.parameters())
    return [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": WEIGHT_DECAY},
            {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0}]


def start(request):
    torch.set_num_threads(request["threads"])
    model, batch = Model(request["size"]), request["batch"]
    load(list(model.parameters()), request["parameters"], request["weights"])
    optimizer = torch.optim.AdamW(decay_groups(model), lr=LEARNING_RATE, fused=True)
    ids = torch.tensor(batch["ids"]).view(len(batch["lengths"]), batch["longest"])
    mask, labels = torch.tensor(batch["mask"]).view_as(ids).bool(), torch.tensor(batch["labels"])

    def step():
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(ids, mask), labels).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()

    @torch.inference_mode()
    def forward():
        return model.eval()(ids, mask)

    library = f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"
    return ({"library": library, "params": sum(p.numel() for p in model.parameters())},
            {"step": step, "forward": forward, "logits": lambda: {"logits": forward().flatten().tolist()}})


serve(start)
