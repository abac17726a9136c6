import torch
from torch.autograd.functional import hvp

from show import show, wave


def root_of(mean_anomalies, eccentricity):
    root = mean_anomalies
    for _ in range(8):
        root = root - (root - eccentricity * root.sin() - mean_anomalies) / (1 - eccentricity * root.cos())
    return root


class Anomaly(torch.autograd.Function):
    @staticmethod
    def forward(context, mean_anomalies, eccentricity):
        root = root_of(mean_anomalies, eccentricity)
        context.save_for_backward(root, eccentricity)
        return root

    @staticmethod
    def backward(context, dy):
        root, eccentricity = context.saved_tensors
        scaled = dy / (1 - eccentricity * root.cos())
        return scaled, (scaled * root.sin()).sum().reshape(1)


def f(mean_anomalies, eccentricity):
    return Anomaly.apply(mean_anomalies, eccentricity).square().sum()


def gradient(theta):
    theta = [x.clone().requires_grad_() for x in theta]
    return torch.autograd.grad(f(*theta), theta)[0]


theta = (wave(1000), torch.tensor([0.3]))
show("root", lambda: root_of(*theta))
show("gradient", lambda: gradient(theta))
show("second derivatives", lambda: hvp(f, theta, theta)[1][0])
