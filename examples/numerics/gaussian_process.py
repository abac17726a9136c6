import torch
from torch.autograd.functional import hessian

from show import show, wave


def negative_log_likelihood(theta, distances, y):
    scale, length, noise = theta.exp()
    k = scale * torch.exp(distances / (-2 * length.square())) + torch.diag_embed(noise.expand(len(y)))
    l = torch.linalg.cholesky(k)
    z = torch.linalg.solve_triangular(l, y.unsqueeze(-1), upper=False)
    return 0.5 * z.square().sum() + l.diagonal().log().sum()


def gradient(f, x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(f(x), x)[0]


theta = torch.tensor([0.1, -0.5, -2])
for n in (200, 1000):
    x, y = wave(n, 1), 3 * wave(n, first=7)
    distances = (x - x.T).square()
    f = lambda t: negative_log_likelihood(t, distances, y)
    show(f"gradient, {n} points", lambda: gradient(f, theta))
    if n == 200:
        show(f"hessian, {n} points", lambda: hessian(f, theta))
