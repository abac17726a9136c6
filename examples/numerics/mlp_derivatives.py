import torch
from torch.autograd.functional import hessian, hvp, jacobian, jvp, vjp
from torch.nn.functional import linear

from show import show, wave

w1, b1, w2, b2, w3, b3 = wave(64, 10), wave(64), 0.1 * wave(64, 64), wave(64), 0.1 * wave(10, 64), wave(10)


def f(x):
    return linear(torch.tanh(linear(torch.tanh(linear(x, w1, b1)), w2, b2)), w3, b3)


def length(x):
    return f(x).square().sum()


def jacobians(points):
    points = points.clone().requires_grad_()
    y = f(points)
    rows = [torch.autograd.grad(y[:, i].sum(), points, retain_graph=True)[0] for i in range(10)]
    return torch.stack(rows, 1)


x, v, points = wave(10, first=5), wave(10, first=9), wave(128, 10)
show("vjp", lambda: vjp(f, x, v)[1])
show("jvp", lambda: jvp(f, x, v)[1])
show("hvp", lambda: hvp(length, x, v)[1])
show("jacobian", lambda: jacobian(f, x))
show("jacobian, ten rows at once", lambda: jacobian(f, x, vectorize=True))
show("hessian", lambda: hessian(length, x, vectorize=True))
show("jacobians of 128 points", lambda: jacobians(points))
