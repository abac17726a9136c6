#!/usr/bin/env python3
"""check.py FOLDER: ONNX's own checker finds nothing wrong with the .onnx files of a folder, shapes included.

Exits with 77 where Debian's python3-onnx is missing.
"""

import pathlib
import sys

try:
    import onnx.checker  # a package onnx without it is a folder of ONNX's test data
except ImportError:
    print("skipped: there is no package onnx")
    sys.exit(77)

files = sorted(pathlib.Path(sys.argv[1]).glob("*.onnx"))
if len(files) < 11:
    sys.exit(f"there must be 11 files or more, got {len(files)}")
for file in files:
    onnx.checker.check_model(str(file), full_check=True)
    model = onnx.load(str(file))
    assert model.ir_version == 8, file
    assert model.producer_name == "xgrad" and model.producer_version, file
    assert [(one.domain, one.version) for one in model.opset_import] == [("", 17)], file
    used = {name for node in model.graph.node for name in node.input}
    unused = [tensor.name for tensor in model.graph.initializer if tensor.name not in used]
    assert not unused, (file, unused)
    print(file.name, len(model.graph.node), "nodes")
