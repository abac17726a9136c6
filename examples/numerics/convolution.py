import torch

from show import show, wave


def gradient(p):
    p = [x.clone().requires_grad_() for x in p]
    return torch.autograd.grad(torch.conv2d(*p).square().mean(), p)[1]


p = [wave(8, 16, 32, 32), wave(32, 16, 3, 3)]
show("forward", lambda: torch.conv2d(*p))
show("gradient", lambda: gradient(p))
