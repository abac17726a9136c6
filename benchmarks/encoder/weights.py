"""Weights that xgrad saved, for PyTorch's side of a benchmark."""

import torch


def load(parameters, saved, path):
    """Reads the parameters that xgrad saved, in their order."""
    shapes = [list(parameter.shape) for parameter in parameters]
    if shapes != [parameter["shape"] for parameter in saved]:
        raise ValueError(f"the model has parameters of the shapes {shapes}, the file has {saved}")
    sizes = [parameter.numel() for parameter in parameters]
    numbers = torch.from_file(path, size=sum(sizes), dtype=torch.float32)
    with torch.no_grad():
        for parameter, values in zip(parameters, numbers.split(sizes)):
            parameter.copy_(values.view_as(parameter))
