import torch
from torch.nn.functional import linear, mse_loss

from show import show, wave


def loss(p, x, y):
    h = torch.tanh(linear(torch.tanh(linear(x, p[0], p[1])), p[2], p[3]))
    return mse_loss(linear(h, p[4], p[5]), y)


def adapted_loss(p, task, steps):
    x, other = 3 * wave(10, 1, first=task), 3 * wave(10, 1, first=task + 5)
    for _ in range(steps):
        g = torch.autograd.grad(loss(p, x, torch.sin(x + task)), p, create_graph=True)
        p = [w - 0.1 * dw for w, dw in zip(p, g)]
    return loss(p, other, torch.sin(other + task))


def gradient(p, steps):
    p = [w.clone().requires_grad_() for w in p]
    return torch.autograd.grad(sum(adapted_loss(p, task, steps) for task in range(4)), p)[2]


p = [wave(40, 1), wave(40), 0.2 * wave(40, 40), 0.2 * wave(40), 0.2 * wave(1, 40), wave(1)]
for steps in (1, 5):
    show(f"gradient through {steps}", lambda: gradient(p, steps))
