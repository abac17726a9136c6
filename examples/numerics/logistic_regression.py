import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from show import show, wave

x = wave(2000, 50)
y = ((x * wave(50, first=3)).sum(1) + wave(2000, first=11) > 0).double()


def minimum():
    w = torch.zeros(50, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], lr=1, max_iter=100, line_search_fn="strong_wolfe")

    def loss():
        return binary_cross_entropy_with_logits(x @ w, y) + 1e-3 * w.square().sum()

    def closure():
        optimizer.zero_grad()
        now = loss()
        now.backward()
        return now

    optimizer.step(closure)
    return loss()


show("minimum", minimum)
