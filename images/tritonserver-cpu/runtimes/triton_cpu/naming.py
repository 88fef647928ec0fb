"""Which input or output of a TorchScript model a name in config.pbtxt means.

The rules are those of pytorch_backend, `ModelInstanceState::GetNamingConvention`: the names of `forward`'s
arguments (inputs only), else NAME__INDEX, else the order of config.pbtxt; one rule for all inputs, one for all
outputs.
"""

from collections.abc import Sequence

from triton_cpu.config import ModelError

DELIMITER = "__"


def input_positions(names: Sequence[str], arguments: Sequence[str]) -> list[int]:
    """Give the position among `forward`'s arguments (`self` not counted) of each input.

    Raises ModelError if two inputs have the same, or one is out of range.
    """
    if all(name in arguments for name in names):
        positions = [arguments.index(name) for name in names]
    else:
        positions = _by_index(names)
    if sorted(positions) != list(range(len(arguments))):
        raise ModelError(
            f"inputs {list(names)} mean the positions {positions} among the model's arguments {list(arguments)}: "
            "each position must be named once"
        )
    return positions


def output_positions(names: Sequence[str], count: int | None) -> list[int]:
    """Give the position among the model's outputs of each output; `count` of them, None if unknown before a call.

    Raises ModelError if one is out of range.
    """
    positions = _by_index(names)
    for name, position in zip(names, positions, strict=True):
        if count is not None and position >= count:
            raise ModelError(missing_output(name, count))
    return positions


def missing_output(name: str, count: int) -> str:
    """Say that an output's index is out of range."""
    return (
        f"The output {name} in the model configuration refers to an output index which doesn't exist. "
        f"This model has {count} outputs"
    )


def _by_index(names: Sequence[str]) -> list[int]:
    suffixes = [name.partition(DELIMITER)[2] if DELIMITER in name else None for name in names]
    if all(suffix is not None and all("0" <= digit <= "9" for digit in suffix) for suffix in suffixes):
        return [int(suffix or 0) for suffix in suffixes]
    return list(range(len(names)))
