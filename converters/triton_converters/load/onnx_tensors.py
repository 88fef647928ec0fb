"""Whether requests and answers can hold what an ONNX graph takes and gives, by ONNX Runtime's names of types. Pure."""

import re

HELD = frozenset(
    (
        *("float", "double", "float16", "bool", "string"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    )
)
"""Types of elements that NumPy has. ONNX Runtime gives others as whole numbers of the same bits, or not at all."""


def fault(side: str, name: str, kind: str) -> str:
    """Return why a tensor cannot be served, and what to do; empty: it can.

    ``side``: input or output. ``kind``: such as tensor(float), seq(tensor(int64)) or optional(tensor(bool)).
    """
    found = re.fullmatch(r"tensor\((\w+)\)", kind)
    if found is None:
        what = "optional" if kind.startswith("optional") else "a sequence" if kind.startswith("seq") else "no tensor"
        return (
            f"{side} {name} is {what}, {kind}, but requests and answers hold tensors alone, also those of a dataloader:"
            " export the model with one tensor for it, such as the elements stacked"
        )
    if found[1] not in HELD:
        return (
            f"{side} {name} is {found[1]}, which NumPy does not have, so nothing can be compared: export the model with"
            f" a float32 {side}; weights may stay {found[1]}"
        )
    return ""
