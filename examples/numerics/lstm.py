import torch

from show import show, wave


def lstm(p):
    x, w, u, b = p
    h = c = torch.zeros(x.shape[1], u.shape[1])
    for now in torch.nn.functional.linear(x, w, b):
        i, f, g, o = (now + h @ u.T).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h


def gradient(p):
    p = [x.clone().requires_grad_() for x in p]
    return torch.autograd.grad(lstm(p).square().mean(), p[2])[0]


steps, batch, inputs, hidden = 50, 16, 32, 64
p = [wave(steps, batch, inputs), 0.2 * wave(4 * hidden, inputs), 0.2 * wave(4 * hidden, hidden), 0.2 * wave(4 * hidden)]
with torch.no_grad():
    show("h", lambda: lstm(p))
show("gradient", lambda: gradient(p))
