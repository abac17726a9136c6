import torch
from torch.autograd.functional import hessian

from show import show, wave


def rosenbrock(x):
    head, tail = x[:-1], x[1:]
    return (100 * (tail - head.square()).square() + (1 - head).square()).sum()


def gradient(x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(rosenbrock(x), x)[0]


def minimum(x):
    for _ in range(10):
        x = x - torch.linalg.solve(hessian(rosenbrock, x, vectorize=True), gradient(x))
    return x


start = 1 + 0.1 * wave(100)
show("gradient", lambda: gradient(start))
show("hessian", lambda: hessian(rosenbrock, start, vectorize=True))
show("minimum", lambda: minimum(start))
