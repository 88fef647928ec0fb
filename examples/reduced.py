"""What an example does less of than its overlay for a GPU, which has the settings of NVIDIA's document."""

from collections.abc import Mapping
from functools import reduce
from operator import getitem
from typing import Any

from examples.example import Example, render

FIELDS: Mapping[str, tuple[str | int, ...]] = {
    "maximum batch": ("models", -1, "config", "maxBatchSize"),
    "batch sizes": ("performance", "offline", "batchSizes"),
    "online batch": ("performance", "online", "batchSize"),
    "concurrency": ("performance", "online", "concurrency"),
    "requests of a window": ("performance", "measurement", "requestCount"),
    "samples": ("accuracy", "maxSamples"),
}
"""Paths in the spec of what a CPU does less of, in words; the last model is the one with candidates."""


def reductions(example: Example) -> list[str]:
    """Return one line on what is reduced; none if nothing is, or without an overlay for a GPU."""
    overlays = sorted((example.folder / "overlays").glob("gpu*"))
    if not overlays:
        return []
    less, full = render(example.folder), render(overlays[-1])
    pairs = [(words, _setting(less, path), _setting(full, path)) for words, path in FIELDS.items()]
    arguments = _arguments(full)
    pairs += [(name, value, arguments[name]) for name, value in _arguments(less).items() if name in arguments]
    told = [f"{words} {own} of {whole}" for words, own, whole in pairs if own != whole]
    return [f"reduced: {', '.join(told)} (overlays/{overlays[-1].name} has all)"] if told else []


def _setting(objects: list[dict[str, Any]], path: tuple[str | int, ...]) -> str:
    """Return a number, or the first and the last one."""
    (spec,) = (each["spec"] for each in objects if each["kind"] == "TritonDeployment")
    value: Any = reduce(getitem, path, spec)
    if isinstance(value, dict):
        value = [value["start"], value["end"]]
    return f"{value[0]} to {value[-1]}" if isinstance(value, list) else str(value)


def _arguments(objects: list[dict[str, Any]]) -> dict[str, str]:
    """Return the options --NAME=VALUE of the Job that prepares the source, by their names."""
    pods = [each["spec"]["template"]["spec"] for each in objects if each["kind"] == "Job"]
    commands = [each["command"] for pod in pods for each in (*pod.get("initContainers", ()), *pod["containers"])]
    options = [word.removeprefix("--").split("=") for command in commands for word in command if "=" in word]
    return dict(options)
