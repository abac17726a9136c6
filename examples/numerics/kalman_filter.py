import torch

from show import show, wave


def negative_log_likelihood(noise, measured):
    a = torch.tensor([[1, 0, 0.1, 0], [0, 1, 0, 0.1], [0, 0, 1, 0], [0, 0, 0, 1]])
    c = torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0]])
    q, r = (torch.diag(scale.expand(n)) for scale, n in zip(noise.exp(), (4, 2)))
    x, p, total = torch.zeros(4, 1), torch.eye(4), 0
    for z in measured:
        x = a @ x
        p = a @ p @ a.T + q
        pct = p @ c.T
        l = torch.linalg.cholesky(c @ pct + r)
        w = torch.linalg.solve_triangular(l, z.unsqueeze(-1) - c @ x, upper=False)
        k = torch.linalg.solve_triangular(l, pct.T, upper=False)
        total = total + 0.5 * w.square().sum() + l.diagonal().log().sum()
        x = x + k.T @ w
        p = p - k.T @ k
    return total


def gradient(noise):
    noise = noise.clone().requires_grad_()
    return torch.autograd.grad(negative_log_likelihood(noise, measured), noise)[0]


noise, measured = torch.tensor([-2.0, -1]), wave(200, 2)
with torch.no_grad():
    show("value", lambda: negative_log_likelihood(noise, measured))
show("gradient", lambda: gradient(noise))
