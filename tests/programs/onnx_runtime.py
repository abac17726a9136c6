#!/usr/bin/env python3
"""onnx_runtime.py DIR: writes ONNX files of operators that ONNX's own cases do not have, and beside each what ONNX Runtime
gives for it, as onnx_interop reads them. tests/data/onnx_runtime has those of ONNX Runtime 1.32.
"""

import sys

import numpy as np
import onnxruntime as ort
from onnx import helper as h
from onnx import numpy_helper as nh

out = sys.argv[1]
rng = np.random.default_rng(0)
TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "uint64": 13}


def f(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def case(name, nodes, inputs, outputs, weights={}, opset=17):
    infos = [h.make_tensor_value_info(key, TYPES[str(value.dtype)], value.shape) for key, value in inputs.items()]
    results = [h.make_tensor_value_info(key, type, None) for key, type in outputs.items()]
    graph = h.make_graph(nodes, "graph", infos, results, [nh.from_array(value, key) for key, value in weights.items()])
    sets = [h.make_opsetid("", opset), h.make_opsetid("com.microsoft", 1), h.make_opsetid("ai.onnx.ml", 3)]
    content = h.make_model(graph, opset_imports=sets, ir_version=8 if opset < 21 else 10).SerializeToString()
    got = dict(zip(outputs, ort.InferenceSession(content).run(list(outputs), inputs)))
    with open(f"{out}/{name}.onnx", "wb") as file:
        file.write(content)
    np.savez(
        f"{out}/{name}.npz",
        **{"in." + key: value for key, value in inputs.items()},
        **{"out." + key: value for key, value in got.items()},
    )


def one(name, op, inputs, weights={}, outputs={"y": 1}, order=None, opset=17, domain="com.microsoft", **attributes):
    names = order or list(inputs) + list(weights)
    case(name, [h.make_node(op, names, list(outputs), domain=domain, **attributes)], inputs, outputs, weights, opset)


x = f(2, 5, 8)
one("bias_gelu", "BiasGelu", {"x": x}, {"b": f(8)})
one("gelu", "Gelu", {"x": x})
one("fast_gelu", "FastGelu", {"x": x}, {"b": f(8)})
one("quick_gelu", "QuickGelu", {"x": x}, alpha=1.5)
one("fused_matmul", "FusedMatMul", {"a": f(2, 3, 4), "b": f(2, 3, 5)}, alpha=0.5, transA=1)
one("fused_matmul_b", "FusedMatMul", {"a": f(2, 3, 4)}, {"b": f(6, 4)}, transB=1)
one("fused_gemm", "FusedGemm", {"a": f(3, 4)}, {"b": f(5, 4), "c": f(5)}, transB=1, activation="Relu")
g, bb = f(8), f(8)
one("skip_layer_norm", "SkipLayerNormalization", {"x": x, "s": f(2, 5, 8)}, {"g": g, "b": bb, "bias": f(8)}, epsilon=1e-5)
case(
    "skip_layer_norm_with_sum",
    [h.make_node("SkipLayerNormalization", ["x", "s", "g", "b"], ["y", "", "", "sum"], domain="com.microsoft", epsilon=1e-5)],
    {"x": x, "s": f(2, 5, 8)},
    {"y": 1, "sum": 1},
    {"g": g, "b": bb},
)
one("skip_rms_norm", "SkipSimplifiedLayerNormalization", {"x": x, "s": f(2, 5, 8)}, {"g": g}, epsilon=1e-5)
w, wb = f(8, 24), f(24)
one("attention", "Attention", {"x": x}, {"w": w, "b": wb}, num_heads=2)
one(
    "attention_mask",
    "Attention",
    {"x": x, "m": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)},
    {"w": w, "b": wb},
    order=["x", "w", "b", "m"],
    num_heads=2,
)
one(
    "attention_lengths",
    "Attention",
    {"x": x, "m": np.array([3, 5], np.int32)},
    {"w": w, "b": wb},
    order=["x", "w", "b", "m"],
    num_heads=2,
)
one(
    "attention_ends",
    "Attention",
    {"x": x, "m": np.array([3, 5, 1, 0], np.int32)},
    {"w": w, "b": wb},
    order=["x", "w", "b", "m"],
    num_heads=2,
)
one(
    "attention_3d",
    "Attention",
    {"x": x, "m": np.tril(np.ones((2, 5, 5), np.int32))},
    {"w": w, "b": wb},
    order=["x", "w", "b", "m"],
    num_heads=2,
)
one("attention_causal", "Attention", {"x": x}, {"w": w, "b": wb}, num_heads=4, unidirectional=1, scale=0.3)
one(
    "attention_bias",
    "Attention",
    {"x": x, "r": f(2, 2, 5, 5)},
    {"w": w, "b": wb},
    order=["x", "w", "b", "", "", "r"],
    num_heads=2,
)
one("attention_widths", "Attention", {"x": x}, {"w": f(8, 20), "b": f(20)}, num_heads=2, qkv_hidden_sizes=[8, 8, 4])
one("multi_head", "MultiHeadAttention", {"q": x, "k": f(2, 6, 8), "v": f(2, 6, 4)}, num_heads=2)
one("multi_head_bias", "MultiHeadAttention", {"q": x, "k": f(2, 6, 8), "v": f(2, 6, 8)}, {"b": f(24)}, num_heads=2)
one(
    "multi_head_mask",
    "MultiHeadAttention",
    {"q": x, "k": f(2, 6, 8), "v": f(2, 6, 8), "m": np.array([4, 6], np.int32)},
    order=["q", "k", "v", "", "m"],
    num_heads=2,
)
ids = np.array([[3, 4, 5, 0], [6, 7, 0, 0]], np.int32)
one(
    "embed_layer_norm",
    "EmbedLayerNormalization",
    {"ids": ids, "types": (ids > 4).astype(np.int32), "mask": (ids > 0).astype(np.int32)},
    {"word": f(10, 8), "pos": f(6, 8), "type": f(2, 8), "g": g, "b": bb},
    outputs={"y": 1, "counts": 6},
    order=["ids", "types", "word", "pos", "type", "g", "b", "mask"],
)
q = rng.integers(-128, 127, (8, 6)).astype(np.int8)
qs = np.abs(f(6)) + 0.1
one(
    "dynamic_quantize_matmul",
    "DynamicQuantizeMatMul",
    {"x": x},
    {"w": q, "s": qs, "z": np.arange(6).astype(np.int8), "b": f(6)},
)
one(
    "matmul_integer_to_float",
    "MatMulIntegerToFloat",
    {"a": rng.integers(0, 255, (3, 8)).astype(np.uint8)},
    {"w": q, "as": np.float32(0.02), "bs": qs, "az": np.uint8(120), "bz": np.arange(6).astype(np.int8)},
)
one("rms_norm", "RMSNormalization", {"x": x}, {"g": g}, opset=23, domain="")
one("simplified", "SimplifiedLayerNormalization", {"x": x}, {"g": g}, domain="", epsilon=1e-5)
one("layer_norm_stretched", "LayerNormalization", {"x": x}, {"g": f(5, 1), "b": f(1)}, domain="", axis=-1)
one(
    "attention_23",
    "Attention",
    {"q": f(2, 4, 5, 8), "k": f(2, 2, 6, 8), "v": f(2, 2, 6, 8), "m": rng.random((5, 6)) > 0.3},
    opset=23,
    domain="",
)
one(
    "attention_23_3d",
    "Attention",
    {"q": f(2, 5, 8), "k": f(2, 5, 8), "v": f(2, 5, 8)},
    opset=23,
    domain="",
    q_num_heads=2,
    kv_num_heads=2,
    is_causal=1,
)
one("group_norm_21", "GroupNormalization", {"x": f(2, 4, 5)}, {"g": f(4), "b": f(4)}, opset=21, domain="", num_groups=2)
one("pad_wrap", "Pad", {"x": x}, {"p": np.array([0, 3, 0, 0, 7, 2])}, opset=21, domain="", mode="wrap")
one(
    "pad_ids",
    "Pad",
    {"x": np.arange(6).reshape(2, 3)},
    {"p": np.array([1, -1, 0, 2]), "c": np.array(7)},
    outputs={"y": 7},
    domain="",
)
one("uint64", "Cast", {"x": np.array([1, 300, 2**40], np.uint64)}, domain="", to=1)
one("cast_uint8", "Cast", {"x": np.array([1, 300, -1])}, outputs={"y": 2}, domain="", to=2)
one("cast_half", "Cast", {"x": x}, outputs={"y": 10}, domain="", to=10)
one(
    "quantize_axis",
    "QuantizeLinear",
    {"x": x * 9},
    {"s": np.abs(f(5)) + 0.1, "z": np.arange(5).astype(np.int8)},
    outputs={"y": 3},
    domain="",
    axis=1,
)
one(
    "dequantize_axis",
    "DequantizeLinear",
    {"x": rng.integers(-128, 127, (5, 3)).astype(np.int8)},
    {"s": np.abs(f(3)) + 0.1, "z": np.arange(3).astype(np.int8)},
    domain="",
    axis=-1,
)
one("extractor", "ArrayFeatureExtractor", {"x": x, "i": np.array([[3, 1, 1]])}, domain="ai.onnx.ml")
one(
    "resize_size",
    "Resize",
    {"x": f(1, 2, 5, 7)},
    {"n": np.array([1, 2, 8, 3])},
    order=["x", "", "", "n"],
    domain="",
    mode="linear",
    coordinate_transformation_mode="pytorch_half_pixel",
)
one(
    "resize_cubic",
    "Resize",
    {"x": f(1, 2, 5, 7)},
    {"n": np.array([1, 2, 8, 9])},
    order=["x", "", "", "n"],
    domain="",
    mode="cubic",
    coordinate_transformation_mode="align_corners",
)
one(
    "lstm_lengths",
    "LSTM",
    {"x": f(5, 2, 3), "l": np.array([3, 5], np.int32)},
    {"w": f(2, 16, 3), "r": f(2, 16, 4), "b": f(2, 32)},
    outputs={"y": 1, "h": 1, "c": 1},
    order=["x", "w", "r", "b", "l"],
    domain="",
    direction="bidirectional",
    hidden_size=4,
)
one(
    "gru_reverse",
    "GRU",
    {"x": f(5, 2, 3), "l": np.array([5, 2], np.int32), "h0": f(1, 2, 4)},
    {"w": f(1, 12, 3), "r": f(1, 12, 4), "b": f(1, 24)},
    outputs={"y": 1, "h": 1},
    order=["x", "w", "r", "b", "l", "h0"],
    domain="",
    direction="reverse",
    hidden_size=4,
    linear_before_reset=1,
)
one(
    "gru_reset_first",
    "GRU",
    {"x": f(5, 2, 3), "l": np.array([5, 2], np.int32)},
    {"w": f(2, 12, 3), "r": f(2, 12, 4), "b": f(2, 24)},
    outputs={"y": 1, "h": 1},
    order=["x", "w", "r", "b", "l"],
    domain="",
    direction="bidirectional",
    hidden_size=4,
)
then = h.make_graph([h.make_node("Mul", ["x", "w"], ["t"])], "then", [], [h.make_tensor_value_info("t", 1, None)])
other = h.make_graph(
    [h.make_node("Constant", [], ["k"], value=nh.from_array(np.float32(3))), h.make_node("Add", ["x", "k"], ["u"])],
    "else",
    [],
    [h.make_tensor_value_info("u", 1, None)],
)
branch = lambda: [
    h.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
    h.make_node("Constant", [], ["zero"], value=nh.from_array(np.float32(0))),
    h.make_node("Greater", ["s", "zero"], ["c"]),
    h.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
]
case("if_then", branch(), {"x": np.abs(f(2, 3))}, {"y": 1}, {"w": f(3)})
case("if_else", branch(), {"x": -np.abs(f(2, 3))}, {"y": 1}, {"w": f(3)})
