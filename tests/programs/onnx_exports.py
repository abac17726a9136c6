#!/usr/bin/env python3
"""onnx_exports.py DIR: writes ONNX files with both exporters of PyTorch, with transformers and with ONNX Runtime's tools, and
beside each what ONNX Runtime gives for it, as onnx_interop reads them. All weights are random.
"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import torch
import torch.nn.functional as F
import transformers
from onnxruntime.quantization import quantize_dynamic
from torch import nn

out = Path(sys.argv[1])


def save_results(path, given):
    session = ort.InferenceSession(path)
    names = [one.name for one in session.get_outputs()]
    wanted = {one.name for one in session.get_inputs()}
    given = {name: value for name, value in given.items() if name in wanted}
    arrays = {"in." + name: value for name, value in given.items()}
    arrays |= {"out." + name: value for name, value in zip(names, session.run(names, given))}
    np.savez(path.with_suffix(".npz"), **arrays)


def export(name, model, given, axes=("batch",)):
    """Exports in both ways, with open lengths of the first axes."""
    model.eval()
    arrays = {key: value.numpy() for key, value in given.items()}
    open_axes = {key: dict(enumerate(axes)) for key in given}
    names, values = list(given), tuple(given.values())
    paths = {kind: out / f"{name}_{kind}.onnx" for kind in ("script", "dynamo")}
    with torch.no_grad():
        torch.onnx.export(
            model, values, paths["script"], dynamo=False, opset_version=17, input_names=names, dynamic_axes=open_axes
        )
        shapes = tuple({axis: torch.export.Dim.AUTO for axis in range(len(axes))} for _ in names)
        torch.onnx.export(
            model, values, paths["dynamo"], dynamo=True, opset_version=20, input_names=names, dynamic_shapes=(shapes,)
        )
    for path in paths.values():
        save_results(path, arrays)
    return paths["script"], arrays


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class Outputs(nn.Module):
    """The tensors that a model of transformers returns."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        return tuple(self.model(**dict(zip(self.names, inputs))).to_tuple()[:1])


FUNCTIONS = {
    "argmax": lambda x: x.argmax(-1),
    "bucketize": lambda x: torch.bucketize(x, torch.tensor([-0.5, 0.5])),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "conv_transpose": lambda x: F.conv_transpose1d(x, torch.ones(5, 4, 3), stride=2, padding=1, output_padding=1),
    "cumsum": lambda x: x.cumsum(1),
    "group_norm": lambda x: F.group_norm(x, 5),
    "hardswish": F.hardswish,
    "interpolate": lambda x: F.interpolate(x, scale_factor=2.0, mode="linear"),
    "logsumexp": lambda x: x.logsumexp(-1),
    "mish": F.mish,
    "norm": lambda x: x.norm(dim=-1),
    "one_hot": lambda x: F.one_hot(x.argmax(-1), 8),
    "pad_reflect": lambda x: F.pad(x, (1, 2), mode="reflect"),
    "prod": lambda x: x.prod(-1),
    "scatter_add": lambda x: torch.zeros(2, 5, 8).scatter_add(1, torch.ones(2, 5, 8, dtype=torch.long), x),
    "softplus": F.softplus,
    "sort": lambda x: x.sort(-1)[0],
    "std": lambda x: x.std(-1),
    "tile": lambda x: x.tile(2),
    "topk": lambda x: x.topk(3)[0],
    "where": lambda x: torch.where(x.isnan(), 0.0, x),
}


class LastStep(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = kind(8, 16, batch_first=True, bidirectional=True)

    def forward(self, *inputs):
        return self.layer(*inputs)[0][:, -1]


def models():
    sizes = {"vocab_size": 100, "max_position_embeddings": 40}
    bert = sizes | {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    yield "bert", transformers.BertModel, transformers.BertConfig(**bert)
    yield "roberta", transformers.RobertaModel, transformers.RobertaConfig(**bert, pad_token_id=1)
    yield "electra", transformers.ElectraModel, transformers.ElectraConfig(**bert, embedding_size=8)
    small = {"dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 32}
    yield "distilbert", transformers.DistilBertModel, transformers.DistilBertConfig(**sizes, **small)


torch.manual_seed(0)
out.mkdir(parents=True, exist_ok=True)
x, image = torch.randn(2, 5, 8), torch.randn(2, 3, 16, 16)
for name, function in FUNCTIONS.items():
    export("function_" + name, Function(function), {"x": x})
for kind in (nn.LSTM, nn.GRU, nn.RNN):
    export(kind.__name__.lower(), LastStep(kind), {"x": x})
layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=8)]
network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
export("images", Function(network), {"x": image})
mask = torch.ones(2, 7, dtype=torch.long)
mask[1, 4:] = 0
for name, model, config in models():
    pad = config.pad_token_id
    ids = torch.where(mask == 1, torch.randint(5, 100, (2, 7)), pad)
    for attention in ("sdpa", "eager"):
        given = {"input_ids": ids, "attention_mask": mask}
        wrapped = Outputs(model._from_config(config, attn_implementation=attention).eval(), list(given))
        path, arrays = export(f"{name}_{attention}", wrapped, given, ("batch", "sequence"))
        for level in ("BASIC", "EXTENDED"):
            options = ort.SessionOptions()
            options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, "ORT_ENABLE_" + level)
            optimized = path.with_stem(path.stem + "_" + level.lower())
            options.optimized_model_filepath = str(optimized)
            ort.InferenceSession(path, options)
            save_results(optimized, arrays)
        quantized = path.with_stem(path.stem + "_quantized")
        quantize_dynamic(path, quantized)
        save_results(quantized, arrays)
