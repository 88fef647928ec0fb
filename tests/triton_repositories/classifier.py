"""Save a classifier of texts as TorchScript: `python3 classifier.py FILE`, where PyTorch is."""

import sys

import torch

WORDS, CLASSES = 12, 2


class Classifier(torch.nn.Module):
    """What the configuration of RamVegiraju's model `torch_classifier` declares."""

    def __init__(self) -> None:
        """Let the words of the vocabulary take turns between the classes, so that texts differ in their labels."""
        super().__init__()
        classes = torch.arange(WORDS) % CLASSES
        self.shares = torch.nn.Embedding.from_pretrained(torch.nn.functional.one_hot(classes).to(torch.float32))

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the share of each class in the words of each text."""
        mask = attention_mask.unsqueeze(-1).to(torch.float32)
        return (self.shares(input_ids) * mask).sum(1) / mask.sum(1).clamp(min=1.0)


if __name__ == "__main__":
    torch.jit.script(Classifier().eval()).save(sys.argv[1])
