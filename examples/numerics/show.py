"""What ../common/show.hpp is for the C++ programs, for their counterparts in PyTorch."""

import resource
import sys
import time

import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def wave(*shape, first=1):
    count = 1
    for length in shape:
        count *= length
    return torch.sin(torch.arange(float(first), first + count - 0.5)).reshape(shape)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def show(what, f):
    if "--only" in sys.argv and sys.argv[sys.argv.index("--only") + 1] != what:
        return
    if "--time" not in sys.argv:
        y = f().detach()
        print(f"{what}: {(y if y.dim() == 0 else (y * wave(*y.shape)).sum()).item():.7g}")
        return
    before, times, begin = peak(), [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < 0.5:
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    print(f"{what}: {sorted(times)[len(times) // 2] * 1e6:.6g} us, {(peak() - before) / 1e3:.6g} MB")
