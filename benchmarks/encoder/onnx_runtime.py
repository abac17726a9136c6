"""ONNX Runtime, which bench_encoder and bench_onnx measure beside xgrad: the forward pass of a file."""

import pathlib
import shutil
import tempfile
import time

import numpy
import onnxruntime

from worker import serve


def quantized(path, folder):
    """The same with int8 weights, a scale for each channel, and activations that are quantised as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    folded, result = folder / "folded.onnx", folder / "int8.onnx"
    quant_pre_process(path, folded, skip_symbolic_shape=True)  # constants alone are quantised, such as turned weights
    quantize_dynamic(folded, result, per_channel=True, weight_type=QuantType.QInt8)
    return result


def start(request):
    """Of a file's path and arrays of integers by the names of its inputs; answers with its first output and the CPU time that
    loading takes. The quantised file is left at the path `kept`, if there is one."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = request["threads"]
    options.inter_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        path = quantized(request["path"], pathlib.Path(folder)) if request["int8"] else request["path"]
        if request.get("kept"):
            shutil.copyfile(path, request["kept"])
        begin = time.process_time()
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        loading = 1e3 * (time.process_time() - begin)
    feeds = {name: numpy.array(array["data"], numpy.int64).reshape(array["shape"])
             for name, array in request["inputs"].items()}

    def forward():
        return session.run(None, feeds)[0]

    library = f"ONNX Runtime {onnxruntime.__version__}" + (", int8" if request["int8"] else "")
    return {"library": library, "output": forward().ravel().tolist(), "start": loading}, {"forward": forward}


serve(start)
