"""The typed arguments of a user's function: those of the spec, those of the stage, and its own defaults.

The contract is that of NVIDIA's deployment toolkit: a function's named parameters, and what an
``update_argparser(parser)`` in the same file declares, say which arguments exist and which types they have.
"""

import argparse
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NoReturn, Union, get_args, get_origin

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})


@dataclass(frozen=True)
class Offer:
    """Arguments to pass: the function must take all of ``spec``; it gets those of ``stage`` that it takes."""

    spec: Mapping[str, str]
    stage: Mapping[str, int | str]

    def get(self, name: str) -> str | None:
        """Return the spec's value, else the stage's, else None."""
        value = self.spec.get(name, self.stage.get(name))
        return None if value is None else str(value)


def harvest(
    function: Callable[..., Any],
    offer: Offer,
    update_argparser: Callable[[argparse.ArgumentParser], Any] | None,
    where: str,
) -> dict[str, Any]:
    """Return the keyword arguments for ``function``.

    ``where`` names the function in messages. Raises StageError(InvalidSpec) if the function does not
    take an argument of the spec, if an argument is missing, or if a value has the wrong type.
    """
    parameters = inspect.signature(function).parameters
    named = {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    names = _globals(function)
    values: dict[str, Any] = {}
    if update_argparser is not None:
        parsed = _parse(update_argparser, offer, where)
        values = {name: value for name, value in parsed.items() if takes_any or name in named}
    for name, parameter in named.items():
        text = offer.get(name)
        if name in values:
            continue
        if name not in offer.spec and name in offer.stage and parameter.annotation is parameter.empty:
            values[name] = offer.stage[name]
        elif text is not None:
            values[name] = _typed(text, _resolved(parameter.annotation, names), parameter.default, f"{where}: {name}")
        elif parameter.default is parameter.empty:
            raise _invalid(f"{where} needs the argument {name!r}; add it to the arguments in the spec")
    if takes_any:
        # An argparse declaration says what is taken; without one, everything is.
        rest = offer.stage if update_argparser is not None else {**offer.stage, **offer.spec}
        values = {**rest, **values}
    unknown = sorted(offer.spec.keys() - values.keys())
    if unknown:
        known = ", ".join(sorted(values.keys() | named.keys())) or "none"
        raise _invalid(f"{where} does not take {', '.join(map(repr, unknown))}; it takes: {known}")
    return values


def convert(text: str, kind: Any) -> Any:
    """Return ``text`` as a value of the annotation ``kind``; raises ValueError if it is not one."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _convert_union(text, inner)
    if origin is Literal:
        matching = [value for value in inner if str(value) == text]
        return matching[0] if matching else _refuse(text, f"one of {inner}")
    if origin is tuple and len(inner) > 1 and ... not in inner:
        return _convert_tuple(text, inner)
    if kind in (list, tuple, set) or origin in (list, tuple, set) or _is_sequence(origin or kind):
        items = [convert(item, inner[0] if inner else str) for item in _split(text)]
        return {tuple: tuple, set: set}.get(origin or kind, list)(items)
    if kind is bool:
        return _convert_bool(text)
    if kind in (int, float, Path):
        return kind(text)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _convert_enum(text, kind)
    return text


def _convert_tuple(text: str, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    parts = _split(text)
    if len(parts) != len(kinds):
        _refuse(text, f"a list of {len(kinds)} values")
    return tuple(convert(part, each) for part, each in zip(parts, kinds, strict=True))


def _convert_enum(text: str, kind: type[Enum]) -> Enum:
    """Return the member that has the text as its value, or else as its name."""
    members = [each for each in kind if str(each.value) == text]
    members += [kind[text]] if text in kind.__members__ else []
    return members[0] if members else _refuse(text, f"one of {', '.join(str(each.value) for each in kind)}")


def _convert_union(text: str, kinds: tuple[Any, ...]) -> Any:
    if type(None) in kinds and text.lower() in ("", "none", "null"):
        return None
    failures = []
    # str accepts everything, so it is tried last.
    for kind in sorted((kind for kind in kinds if kind is not type(None)), key=lambda kind: kind is str):
        try:
            return convert(text, kind)
        except ValueError as error:
            failures.append(str(error))
    raise ValueError("; ".join(failures))


def _convert_bool(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    return False if text.lower() in _FALSE else _refuse(text, "true or false")


def _refuse(text: str, wanted: str) -> NoReturn:
    raise ValueError(f"{text!r} is not {wanted}")


def _is_sequence(kind: Any) -> bool:
    return kind in (typing.Sequence, typing.Iterable) or getattr(kind, "__name__", "") in ("Sequence", "Iterable")


def _split(text: str) -> list[str]:
    """Return the items of a list; commas or blanks separate them, and brackets and quotes may surround them."""
    return [item.strip("'\"") for item in re.split(r"[,\s]+", text.strip().removeprefix("[").removesuffix("]")) if item]


def _typed(text: str, annotation: Any, default: Any, where: str) -> Any:
    if annotation is inspect.Parameter.empty:
        annotation = _type_of(default)
    try:
        return convert(text, annotation)
    except ValueError as error:
        raise _invalid(f"{where}: {error}") from error


def _type_of(default: Any) -> Any:
    """Return the type of a plain default, and of a list's elements if they have one or are numbers; else text."""
    if not isinstance(default, list | tuple | set):
        return type(default) if isinstance(default, bool | int | float | Path | Enum) else str
    kinds = {_type_of(each) for each in default if not isinstance(each, list | tuple | set)} or {str}
    element = kinds.pop() if len(kinds) == 1 else float if kinds == {int, float} else str
    return {list: list[element], set: set[element]}.get(type(default), tuple[element, ...])  # type: ignore[valid-type]  # known when it runs


def _globals(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the names that annotations of a function, a class or a callable object mean."""
    target: Any = function.__init__ if inspect.isclass(function) else function
    while isinstance(target, functools.partial):
        target = target.func
    target = inspect.unwrap(target)
    # A method has those of its function; any other object is called by a method of its class.
    names = getattr(target, "__globals__", None) or getattr(type(target).__call__, "__globals__", None)
    return names or {}


def _resolved(annotation: Any, names: dict[str, Any]) -> Any:
    """Return an annotation as an object; one that the names do not tell counts as none."""

    def holder() -> None:
        """Have one annotation."""

    holder.__annotations__ = {"value": annotation}
    try:
        return typing.get_type_hints(holder, names)["value"]
    # Whatever the text of an annotation raises: many are only meant for a type checker.
    except Exception:
        return inspect.Parameter.empty


class _Parser(argparse.ArgumentParser):
    """A parser that raises StageError."""

    def __init__(self, where: str) -> None:
        super().__init__(prog=where, add_help=False, allow_abbrev=False, conflict_handler="resolve")
        self.where = where

    def error(self, message: str) -> NoReturn:
        """Raise StageError that says which of the user's arguments is wrong."""
        raise _invalid(f"{self.where} (declared in update_argparser): {message}")


def _parse(update: Callable[[argparse.ArgumentParser], Any], offer: Offer, where: str) -> dict[str, Any]:
    """Return every argument that ``update`` declares, with its default if nothing is offered."""
    parser = _Parser(where)
    update(parser)
    argv: list[str] = []
    positional: list[str] = []
    flags: dict[str, bool] = {}
    for action in parser._actions:  # noqa: SLF001 - no public name lists them
        text = offer.get(action.dest)
        if text is None:
            continue
        if action.nargs == 0:
            # A store_false argument is given as the value that it stores: --no-x as x=false.
            try:
                flags[action.dest] = _convert_bool(text)
            except ValueError as error:
                parser.error(f"argument {action.dest}: {error}")
            if action.required:
                argv.append(action.option_strings[0])
        elif action.nargs is not None and action.nargs != "?":
            items = _split(text)
            argv += [action.option_strings[-1], *items] if action.option_strings else []
            positional += [] if action.option_strings else items
        elif action.option_strings:
            argv.append(f"{action.option_strings[-1]}={text}")
        else:
            positional.append(text)
    return vars(parser.parse_args([*argv, "--", *positional] if positional else argv)) | flags


def _invalid(message: str) -> StageError:
    return StageError(Reason.INVALID_SPEC, message)
