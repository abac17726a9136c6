#!/usr/bin/env python3
"""Writes the frequencies of rotary and the buckets of relative positions of Hugging Face's transformers: make_cases.py FOLDER

The cases beside this file were made with transformers 5.24.0 and PyTorch 2.13.0, in float64: what the functions make in float32
is made in float64 here.
"""

import json
import pathlib
import sys
import types

import torch

torch.float = torch.float32 = torch.float64
torch.Tensor.float = torch.Tensor.double

from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS  # noqa: E402
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position  # noqa: E402
from transformers.models.t5.modeling_t5 import T5Attention  # noqa: E402


def rotary(kind, dim, length, most=64, theta=10000.0, **parameters):
    config = types.SimpleNamespace(
        head_dim=dim, hidden_size=dim, num_attention_heads=1, max_position_embeddings=most, standardize_rope_params=lambda: None,
        rope_parameters={"rope_theta": theta, **parameters})
    frequencies, attention_factor = ROPE_INIT_FUNCTIONS[kind](config, None, seq_len=length)
    return {"kind": kind, "dim": dim, "length": length, "max_positions": most, "theta": theta, **parameters,
            "frequencies": frequencies.tolist(), "cos_factor": attention_factor}


LONG = {"short_factor": [1.0, 1.5, 2.0, 4.0], "long_factor": [1.25, 3.0, 6.0, 20.0]}
YARN = {"factor": 4.0, "original_max_position_embeddings": 64}
rotary_cases = [
    rotary("linear", 8, 10, factor=4.0),
    rotary("dynamic", 8, 10, factor=2.0),
    rotary("dynamic", 8, 100, factor=2.0),
    rotary("dynamic", 16, 1000, theta=500000.0, factor=8.0),
    rotary("llama3", 16, 10, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64),
    rotary("llama3", 64, 10, theta=500000.0, factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192),
    rotary("yarn", 16, 10, **YARN),
    rotary("yarn", 16, 10, **YARN, truncate=False),
    rotary("yarn", 16, 10, **YARN, beta_fast=8.0, beta_slow=2.0),
    rotary("yarn", 64, 10, theta=1e6, factor=40.0, original_max_position_embeddings=4096, mscale=1.0, mscale_all_dim=0.5),
    rotary("yarn", 16, 10, **YARN, attention_factor=1.3),
    rotary("yarn", 4, 10, factor=2.0, original_max_position_embeddings=2),
    rotary("longrope", 8, 64, most=256, **LONG, factor=None, original_max_position_embeddings=64),
    rotary("longrope", 8, 65, most=256, **LONG, factor=None, original_max_position_embeddings=64),
    rotary("longrope", 8, 65, **LONG, factor=32.0, original_max_position_embeddings=64, attention_factor=1.5),
]


def buckets(queries, keys, **options):
    distances = torch.arange(keys)[None, :] - torch.arange(queries)[:, None]
    return {"queries": queries, "keys": keys, **options, "buckets": T5Attention._relative_position_bucket(distances, **options).tolist()}


bucket_cases = [
    buckets(5, 7, bidirectional=True, num_buckets=32, max_distance=128),
    buckets(40, 40, bidirectional=True, num_buckets=8, max_distance=20),
    buckets(3, 200, bidirectional=True, num_buckets=32, max_distance=128),
    buckets(200, 3, bidirectional=False, num_buckets=32, max_distance=128),
    buckets(30, 30, bidirectional=False, num_buckets=6, max_distance=9),
]

def signed_buckets(length, num_buckets, max_distance):
    distances = torch.arange(length)
    found = make_log_bucket_position(distances, num_buckets, max_distance).long() if num_buckets else distances
    return {"length": length, "num_buckets": num_buckets, "max_distance": max_distance, "buckets": found.tolist()}


signed_bucket_cases = [
    signed_buckets(6, 0, 4),
    signed_buckets(12, 2, 5),
    signed_buckets(20, 7, 10),
    signed_buckets(40, 18, 37),
    signed_buckets(5, 32, 4),
    signed_buckets(600, 256, 512),
]

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    lists = {"rotary": rotary_cases, "buckets": bucket_cases, "signed_buckets": signed_bucket_cases}
    text = ",\n".join(f'"{name}": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]" for name, cases in lists.items())
    (pathlib.Path(sys.argv[1]) / "cases.json").write_text("{" + text + "}\n")
