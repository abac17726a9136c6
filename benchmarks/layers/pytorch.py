"""The convolutional and recurrent models in PyTorch 2 as its users write them, which bench_layers measures beside xgrad's."""

import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "encoder"))
from worker import serve

CLASSES = 10


class LeNet(nn.Module):
    batch, input = 64, (64, 1, 28, 28)

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.shortcut = nn.Identity()
        if stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


class ResNet(nn.Module):
    batch, input = 64, (64, 3, 32, 32)

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        sizes = [16, 16, 16, 32, 32, 64, 64]
        pairs = zip(sizes, sizes[1:])
        self.blocks = nn.Sequential(*(Block(channels, out, 1 if out == channels else 2) for channels, out in pairs))
        self.fc = nn.Linear(64, CLASSES)

    def forward(self, x):
        return self.fc(self.blocks(F.relu(self.bn(self.conv(x)))).mean((2, 3)))


class Recurrent(nn.Module):
    batch = 32

    def __init__(self, layer, size):
        super().__init__()
        self.input = (128, self.batch, size)
        self.layer, self.fc = layer(size, size), nn.Linear(size, CLASSES)

    def forward(self, x):
        state = self.layer(x)[1]
        return self.fc((state[0] if isinstance(state, tuple) else state)[0])


def model_of(name):
    if name in ("lenet", "resnet"):
        return {"lenet": LeNet, "resnet": ResNet}[name]()
    layer, size = name.split("-")
    return Recurrent({"lstm": nn.LSTM, "gru": nn.GRU}[layer], int(size))


def start(request):
    """The weights and the batch are xgrad's, as the seed is."""
    torch.set_num_threads(request["threads"])
    torch.manual_seed(request["seed"])
    model = model_of(request["config"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    x = torch.rand(model.input)
    labels = torch.randint(CLASSES, (model.batch,))

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    library = f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"
    params = sum(parameter.numel() for parameter in model.parameters())
    return {"library": library, "params": params, "losses": [step(), step()]}, {"step": step}


serve(start)
