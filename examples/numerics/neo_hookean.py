import torch

from show import show, wave


def energy(f):
    mu, lam = 80, 120
    log_j = torch.log(torch.linalg.det(f))
    return mu / 2 * (f.square().sum((-2, -1)) - 3) - mu * log_j + lam / 2 * log_j.square()


def stresses(f, create_graph=False):
    f = f.clone().requires_grad_()
    return f, torch.autograd.grad(energy(f).sum(), f, create_graph=create_graph)[0]


def tangents(f):
    f, p = stresses(f, create_graph=True)
    rows = [torch.autograd.grad(p[:, i, j].sum(), f, retain_graph=True)[0] for i in range(3) for j in range(3)]
    return torch.stack(rows, 1).unflatten(1, (3, 3))


f = torch.eye(3) + 0.1 * wave(10000, 3, 3)
show("stresses", lambda: stresses(f)[1])
show("tangents", lambda: tangents(f))
