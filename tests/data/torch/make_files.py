"""Writes the files of this folder with PyTorch 2.13 and safetensors 0.8: python3 make_files.py"""

import collections

import torch
from safetensors.torch import save_file

torch.manual_seed(1)
pool = torch.randn(40)
state = collections.OrderedDict()
state["first.weight"] = pool[:12].view(3, 4)
state["first.bias"] = pool[12:15]  # a part of the same storage
state["transposed"] = torch.randn(4, 3).t()
state["every.other"] = torch.randn(2, 6)[:, ::2]
state["permuted"] = torch.arange(24, dtype=torch.int16).view(2, 3, 4).permute(2, 0, 1)
state["repeated"] = torch.arange(3).expand(2, 3)
state["one.row"] = torch.arange(4).expand(1, 4)
state["tied"] = state["transposed"]
state["scalar"] = torch.tensor(2.5, dtype=torch.float64)
state["empty"] = torch.empty(0, 3)
state["parameter"] = torch.nn.Parameter(torch.randn(2))
for name in "float16 bfloat16 int64 int32 int8 uint8 complex64 uint16 uint32 uint64".split():
    state[name] = torch.tensor([0, 1, 127]).to(getattr(torch, name))
state["bool"] = torch.tensor([True, False, True])
for name in "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz".split():
    state[name] = torch.arange(256, dtype=torch.uint8).view(getattr(torch, name))
state._metadata = collections.OrderedDict({"": {"version": 1}})

torch.save(state, "zip.bin")
torch.save(state, "legacy.bin", _use_new_zipfile_serialization=False)
save_file({name: tensor.detach().clone().contiguous() for name, tensor in state.items()}, "expected.safetensors")
numbers = {name: tensor.float() for name, tensor in state.items() if name.startswith("float8")}
save_file(numbers, "float8.safetensors")

module = torch.nn.Linear(2, 1)
torch.save(module, "module.bin")
torch.save({"state_dict": module.state_dict(), "epoch": 3}, "checkpoint.bin")
torch.save(module.state_dict(), "protocol_4.bin", pickle_protocol=4)
torch.save({"w": torch.eye(2).to_sparse()}, "sparse.bin")
torch.save({"w": torch.tensor([1 + 2j]).conj()}, "conjugate.bin")
torch.save([torch.ones(1)], "list.bin")
torch.jit.trace(module, torch.ones(2)).save("script.bin")
