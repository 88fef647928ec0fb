"""Which of a model's own tensors each name of ``get_model`` means: by name, or by order if the model has no such names.

Pure. All errors are ValueErrors that tell both orders and what to do.
"""

from collections.abc import Collection, Sequence
from inspect import Parameter
from typing import Any

POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def places(names: Sequence[str], own: Sequence[str], what: str) -> tuple[int, ...]:
    """Return the place of each name among the model's own names of the same tensors.

    That is by name if the model has all of them, else by order, which no name that it has may contradict. ``what``:
    how a message calls the model's own names. Raises ValueError.
    """
    if set(names) <= set(own):
        return tuple(own.index(name) for name in names)
    moved = [name for place, name in enumerate(names) if name in own and own.index(name) != place]
    if moved:
        raise _ambiguous(names, own, what, f"{moved[0]} is not at its place, and only some of them are the model's own")
    return tuple(range(len(names)))


def keywords(names: Sequence[str], parameters: Sequence[Parameter], what: str = "forward's parameters") -> bool:
    """Whether a function has to be called with its inputs by name, not in the order of ``names``.

    ``parameters``: the function's own, in its order. Raises ValueError if neither is right.
    """
    wanted = set(names)
    kinds = {each.kind for each in parameters}
    named = [each for each in parameters if each.kind in (*POSITIONAL, Parameter.KEYWORD_ONLY)]
    own = [each.name for each in named]
    positional = [each.name for each in named if each.kind in POSITIONAL]
    if list(names) == positional[: len(names)]:
        return False
    if not wanted <= set(own):
        takes_any = Parameter.VAR_KEYWORD in kinds and Parameter.VAR_POSITIONAL not in kinds
        if takes_any and len(names) > len(positional):
            return True
        places(names, own, what)
        return False
    if why := _not_by_name(wanted, named):
        raise _ambiguous(names, own, what, why)
    return True


def _not_by_name(names: Collection[str], parameters: Sequence[Parameter]) -> str:
    """Return why a function cannot be called with these parameters by name; empty if it can."""
    for each in parameters:
        if each.kind is Parameter.POSITIONAL_ONLY and each.name in names:
            return f"{each.name} can be passed by position alone"
    for each in parameters:
        if each.default is Parameter.empty and each.name not in names:
            return f"{each.name}, which has no default, is not among them"
    return ""


def items(result: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """Return the items of what a model returned: by name if it is a tuple with names, else as they are.

    Raises ValueError.
    """
    # Of the type: torch's Dynamo, which reads this too, knows no attribute of a tuple.
    fields = getattr(type(result), "_fields", ())
    if len(fields) < len(names):
        return list(result)
    return [result[place] for place in places(names, fields, "the fields of what the model returned")]


def _ambiguous(names: Sequence[str], own: Sequence[str], what: str, why: str) -> ValueError:
    orders = f"get_model names {', '.join(names)}, but {what} are {', '.join(own)}"
    return ValueError(f"{orders}: {why}; name all of them as the model does, or none, in the model's order")
