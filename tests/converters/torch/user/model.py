"""Small models of every kind the converters know; ``get_model(kind)`` picks one."""

from typing import NamedTuple, Optional

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as PyTorch's users write it


class Classifier(nn.Module):
    """Images (batch, 1, 8, 8) to scores (batch, 4): convolution, batch norm, a view that asks for the batch's size."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.head = nn.Linear(6 * 16, 4)

    def forward(self, images: Tensor) -> Tensor:
        hidden = F.max_pool2d(torch.relu(self.norm(self.conv(images))), 2)
        return self.head(hidden.view(hidden.size(0), -1))


class Recommender(nn.Module):
    """Items (batch, 5) of INT64 and a visitor (batch, 4) to scores (batch, 3) and the best one (batch)."""

    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(20, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, items: Tensor, visitor: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.head(self.items(items).mean(dim=1) + visitor)
        return scores, scores.argmax(dim=-1)


class Masked(nn.Module):
    """Sequences (batch, time, 4), a mask (batch, time) of BOOL: one output a step, one a sequence; lengths vary."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(4, 3)

    def forward(self, steps: Tensor, mask: Tensor) -> dict[str, Tensor]:
        tags = self.step(steps).tanh().masked_fill(~mask.unsqueeze(-1), 0.0)
        return {"tags": tags, "summary": tags.sum(dim=1), "unused": steps}


class Attention(nn.Module):
    """Sequences (batch, time, 8) to (batch, time, 8); the evaluation mode of torch's own layers is a fused operator."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x)


class Looked(nn.Module):
    """Items (batch, time) of INT64 to (batch, time, 3), by an embedding and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 4)
        self.linear = nn.Linear(4, 3)

    def forward(self, items: Tensor) -> Tensor:
        return self.linear(self.table(items))


class Folding(nn.Module):
    """Patches (batch, 4, 9) to images (batch, 1, 4, 4): Col2Im is an operator since opset 18."""

    def forward(self, x: Tensor) -> Tensor:
        return F.fold(x, 4, 2)


class Recurrent(nn.Module):
    """Sequences (batch, time, 8) to (batch, time, 6)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.GRU(8, 6, num_layers=2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)[0]


class Points(nn.Module):
    """A cloud (points, 3) without batch dimension to one direction (3)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(3, 3)

    def forward(self, points: Tensor) -> Tensor:
        return self.embed(points).amax(dim=0)


class Branching(nn.Module):
    """(batch, 4) to (batch, 3); a branch on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.head(x)
        if bool(x.sum() > 0):
            y = y * 2
        return y


class Positions(Branching):
    """Asks its input where it is, after a branch that the tracer warns of."""

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.isnan().any()):
            x = x.nan_to_num()
        return self.head(x + torch.arange(x.size(1), device=x.device))


class Overflowing(Branching):
    """Finite in fp32; a weight and the hidden values are beyond fp16."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([1e6]))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x) * self.scale / 1e6


class Python(Branching):
    """What torch.jit.script does not know."""

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x) * max((1, 2), key=lambda width: -width)


class Unused(nn.Module):
    """Two inputs, of which one is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor, ignored: Tensor) -> Tensor:
        return self.head(x)


class Exotic(Branching):
    """An operator that no ONNX operator set has."""

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x) + torch.special.bessel_j0(x[:, :3])


class Stochastic(Branching):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(self.head(x), 0.5, training=True)


class BatchStatistics(Branching):
    def forward(self, x: Tensor) -> Tensor:
        y = self.head(x)
        return y - y.mean(dim=0) + y[:, :1]


class BatchNorm(Branching):
    """Evaluation mode or not, this layer uses the batch's own mean."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3, track_running_stats=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.head(x))


class Result(NamedTuple):
    """What Swapped returns."""

    total: Tensor
    part: Tensor


class Swapped(nn.Module):
    """Three inputs (batch, 4) of one type, whose exchange shows, to two outputs (batch, 4), whose exchange shows."""

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> Result:
        return Result(ids - 2 * types + 3 * mask * ids, types - mask)


class LeftOut(nn.Module):
    """TorchScript of old releases knows no other way to write the types."""

    def forward(self, ids: Tensor, mask: Optional[Tensor] = None, types: Optional[Tensor] = None) -> Result:  # noqa: UP045 - TorchScript
        if mask is None:
            mask = torch.ones_like(ids)
        if types is None:
            types = torch.zeros_like(ids)
        return Result(ids - 2 * types + 3 * mask * ids, types - mask)


class KeywordOnly(nn.Module):
    def forward(self, ids: Tensor, *, mask: Tensor, types: Tensor) -> Result:
        return Result(ids - 2 * types + 3 * mask * ids, types - mask)


class Double(Branching):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(x).double()


class Half(Branching):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(x).half()


class TooFew(Branching):
    def forward(self, x: Tensor) -> list[Tensor]:
        return [self.head(x)]


NAMES = {
    "Classifier": (["INPUT__0"], ["OUTPUT__0"]),
    "Recommender": (["items", "visitor"], ["scores", "best"]),
    "Masked": (["steps", "mask"], ["tags", "summary"]),
    "Points": (["points"], ["direction"]),
    "TooFew": (["x"], ["y", "z"]),
    "Unused": (["x", "ignored"], ["y"]),
    "Swapped": (["mask", "ids", "types"], ["part", "total"]),
    "LeftOut": (["ids", "types"], ["part", "total"]),
    "KeywordOnly": (["types", "mask", "ids"], ["part", "total"]),
}


def get_model(
    kind: str,
    checkpoint: str = "",
    training: str = "",
    wrapped: str = "",
    inputs: list[str] = (),
    outputs: list[str] = (),
) -> tuple[nn.Module, dict[str, list[str]]]:
    torch.manual_seed(7)
    model = globals()[kind]()
    if kind == "Classifier":
        model.norm.running_mean.uniform_(-1, 1)
        model.norm.running_var.uniform_(0.5, 2)
    if checkpoint:
        model.load_state_dict(load_file(checkpoint) if checkpoint.endswith(".safetensors") else torch.load(checkpoint))
    model.eval()
    if training:
        model.get_submodule(training).train()
    if wrapped == "script":
        model = torch.jit.script(model)
    elif wrapped == "parallel":
        model = nn.DataParallel(model)
    names = NAMES.get(kind, (["x"], ["y"]))
    return model, {"inputs": list(inputs) or names[0], "outputs": list(outputs) or names[1]}
