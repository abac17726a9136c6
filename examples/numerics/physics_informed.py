import math

import torch
from torch.nn.functional import linear

from show import show, wave


def u(x, p):
    return linear(torch.tanh(linear(torch.tanh(linear(x, p[0], p[1])), p[2], p[3])), p[4], p[5])


def loss(p, x):
    x = x.clone().requires_grad_()
    slope = torch.autograd.grad(u(x, p).sum(), x, create_graph=True)[0]
    curvature = torch.autograd.grad(slope.sum(), x, create_graph=True)[0]
    ends = torch.tensor([[-1.0], [1.0]])
    residual = curvature + math.pi**2 * torch.sin(math.pi * x.detach())
    return residual.square().mean() + u(ends, p).square().sum()


def trained():
    p = [wave(20, 1), wave(20), 0.3 * wave(20, 20), wave(20), 0.3 * wave(1, 20), wave(1)]
    p = [w.requires_grad_() for w in p]
    adam = torch.optim.Adam(p, lr=1e-2)
    points = torch.linspace(-1, 1, 40).unsqueeze(-1)
    for _ in range(100):
        adam.zero_grad()
        loss(p, points).backward()
        adam.step()
    return loss(p, points)


show("loss after 100 steps", trained)
