"""Other libraries with the encoder of a folder, which bench_precision measures beside xgrad: the last hidden states of a batch."""

import logging
import os
import pathlib
import sys
import tempfile
import time
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "encoder"))
from worker import serve


def padded(request):
    """ids and mask (texts, longest)."""
    ids = numpy.array(request["ids"], numpy.int64).reshape(len(request["lengths"]), -1)
    return ids, (numpy.arange(ids.shape[1]) < numpy.array(request["lengths"])[:, None]).astype(numpy.int64)


def onnxruntime_encoder(request, folder, int8):
    """As torch exports it; int8 by dynamic quantisation, with a scale for each channel."""
    import onnxruntime
    import torch
    import transformers
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = transformers.AutoModel.from_pretrained(request["folder"], attn_implementation="eager").eval()

        def forward(self, ids, mask):
            return self.model(input_ids=ids, attention_mask=mask).last_hidden_state

    ids, mask = padded(request)
    path, folded, rounded = folder / "model.onnx", folder / "folded.onnx", folder / "int8.onnx"
    axes = {name: {0: "batch", 1: "length"} for name in ("ids", "mask", "hidden")}
    torch.onnx.export(Hidden(), (torch.from_numpy(ids), torch.from_numpy(mask)), path, input_names=["ids", "mask"],
                      output_names=["hidden"], dynamic_axes=axes, opset_version=17, dynamo=False)
    if int8:
        quant_pre_process(path, folded, skip_symbolic_shape=True)
        quantize_dynamic(folded, rounded, per_channel=True, weight_type=QuantType.QInt8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = request["threads"], 1
    session = onnxruntime.InferenceSession(rounded if int8 else path, options, providers=["CPUExecutionProvider"])
    return onnxruntime.__version__, lambda: session.run(None, {"ids": ids, "mask": mask})[0]


def ctranslate2_encoder(request, folder, int8):
    import ctranslate2
    import transformers

    transformers.BertConfig.position_embedding_type = "absolute"  # which its converter reads, and transformers 5 lacks
    kind = "int8" if int8 else "float32"
    ctranslate2.converters.TransformersConverter(request["folder"]).convert(str(folder / "model"), quantization=kind)
    encoder = ctranslate2.Encoder(str(folder / "model"), compute_type=kind, intra_threads=request["threads"])
    ids, mask = padded(request)
    texts = [row[:length].tolist() for row, length in zip(ids, mask.sum(1))]
    return ctranslate2.__version__, lambda: numpy.array(encoder.forward_batch(texts).last_hidden_state)


def pytorch_encoder(request, folder, int8):
    """The module that sentence-transformers runs."""
    import torch
    import transformers

    torch.set_num_threads(request["threads"])
    model = transformers.AutoModel.from_pretrained(request["folder"]).eval()
    ids, mask = (torch.from_numpy(numbers) for numbers in padded(request))

    def forward():
        with torch.inference_mode():
            return model(input_ids=ids, attention_mask=mask).last_hidden_state.numpy()

    return f"{torch.__version__}, transformers {transformers.__version__}", forward


makers = {"onnxruntime": onnxruntime_encoder, "ctranslate2": ctranslate2_encoder, "pytorch": pytorch_encoder}


def start(request):
    """Answers with the mean of each text's hidden states."""
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        version, forward = makers[request["library"]](request, pathlib.Path(folder), request["precision"] == "int8")
        mask = padded(request)[1][:, :, None]
        vectors = (forward() * mask).sum(1) / mask.sum(1)
    reply = {"library": f"{request['library']} {version}", "vectors": vectors.ravel().tolist(),
             "start": 1e3 * (time.process_time() - begin)}
    return reply, {"forward": forward}


serve(start)
