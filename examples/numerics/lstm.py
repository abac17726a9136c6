import torch

from show import show, wave


def lstm(p):
    x, w, u, b = p
    zeros = torch.zeros(1, x.shape[1], u.shape[1])
    return torch.lstm(x, (zeros, zeros), (w, u, b, torch.zeros_like(b)), True, 1, 0.0, False, False, False)[1][0]


def gradient(p):
    p = [x.clone().requires_grad_() for x in p]
    return torch.autograd.grad(lstm(p).square().mean(), p[2])[0]


steps, batch, inputs, hidden = 50, 16, 32, 64
p = [wave(steps, batch, inputs), 0.2 * wave(4 * hidden, inputs), 0.2 * wave(4 * hidden, hidden), 0.2 * wave(4 * hidden)]
with torch.no_grad():
    show("h", lambda: lstm(p))
show("gradient", lambda: gradient(p))
