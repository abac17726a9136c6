#!/usr/bin/env python3
"""Trains what tests/models/recurrent_test.cpp trains, with PyTorch: make_cases.py FOLDER

A classifier of sequences by each recurrent layer, from a seed alone: its initial weights and the losses of its steps. The
cases beside this file were made by PyTorch 2.13.
"""

import json
import pathlib
import sys

import torch
from torch import nn

torch.set_num_threads(1)
STEPS, SEED, VOCABULARY, CLASSES = 20, 7, 11, 3
LENGTHS = torch.tensor([6, 2, 5, 3])  # all different: PyTorch does not say how it orders equal ones
LAYERS = {
    "RNN": {"nonlinearity": "relu", "num_layers": 1, "bidirectional": False, "bias": False},
    "GRU": {"num_layers": 2, "bidirectional": False, "dropout": 0.3},
    "LSTM": {"num_layers": 2, "bidirectional": True, "dropout": 0.2, "proj_size": 3},
}


class Classifier(nn.Module):
    def __init__(self, kind):
        super().__init__()
        options = LAYERS[kind]
        self.embedding = nn.Embedding(VOCABULARY, 3)
        self.layers = getattr(nn, kind)(3, 4, batch_first=True, **options)
        self.directions = 2 if options["bidirectional"] else 1
        self.head = nn.Linear(self.directions * options.get("proj_size", 4), CLASSES)

    def forward(self, ids):
        x = nn.utils.rnn.pack_padded_sequence(self.embedding(ids), LENGTHS, batch_first=True, enforce_sorted=False)
        last = self.layers(x)[1]
        h = last[0] if isinstance(last, tuple) else last
        return self.head(torch.cat(tuple(h[-self.directions :]), 1))


def run(kind, dtype):
    torch.manual_seed(SEED)
    torch.set_default_dtype(dtype)
    model = Classifier(kind)
    case = {"layer": kind, "dtype": str(dtype).removeprefix("torch.")}
    case["weights"] = {name: w.flatten().tolist() for name, w in model.state_dict().items() if name.startswith("layers.")}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    sequence, time = torch.arange(4)[:, None], torch.arange(6)[None]
    case["losses"] = []
    for step in range(STEPS):
        ids = (5 * sequence + 3 * time + sequence * time + 7 * step) % VOCABULARY
        loss = nn.functional.cross_entropy(model(ids), ids[:, 0] % CLASSES)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        case["losses"].append(loss.item())
    return case


cases = [run(kind, dtype) for kind in LAYERS for dtype in (torch.float32, torch.float64)]
lines = ",\n".join(json.dumps(case) for case in cases)
text = f'{{"produced_by": "PyTorch {torch.__version__}", "cases": [\n{lines}\n]}}\n'
(pathlib.Path(sys.argv[1]) / "cases.json").write_text(text)
