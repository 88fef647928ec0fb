"""Which tensor of a TorchScript file a name in config.pbtxt means. Pure."""

from collections.abc import Sequence


def positions(names: Sequence[str], parameters: Sequence[str] = ()) -> list[int]:
    """Return the position of each name, as Triton's PyTorch backend finds it; ``parameters``: forward's, for inputs.

    Its rules (libtorch.cc, GetNamingConvention): inputs that are all parameters of forward are passed as such; else
    names that all have the form NAME__INDEX stand for that position; else the order is config.pbtxt's.
    """
    indices = [name.partition("__")[2] or "0" for name in names if "__" in name]
    if parameters and set(names) <= set(parameters):
        return [parameters.index(name) for name in names]
    if len(indices) == len(names) and all(index.isdecimal() and index.isascii() for index in indices):
        return [int(index[:9]) for index in indices]
    return list(range(len(names)))
