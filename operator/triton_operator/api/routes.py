"""CEL rules from the registry of formats: what the API server takes is what the converters can do.

Each is a pair of expression and message; the message names what works.
"""

from collections.abc import Iterable

from triton_converters.formats import FORMATS, SOURCES

Rule = tuple[str, str]
NEEDING_GPU = tuple(name for name, form in FORMATS.items() if form.needs_gpu)
"""Formats that are built for one GPU product, and served on it alone."""
HAS_GPU = "(has(self.gpu) && (!has(self.gpu.count) || self.gpu.count > 0))"
"""Of a spec: it asks for GPUs."""


def accelerator_rules() -> list[Rule]:
    """Of a candidate: its accelerator goes with its format."""
    return [
        (
            f"self.format != '{name}' || !has(self.accelerator) || self.accelerator in {_list(form.accelerators)}",
            f"format {name} takes accelerator {_or(form.accelerators)}",
        )
        for name, form in FORMATS.items()
    ]


def conversion_rules() -> list[Rule]:
    """Of a model: every candidate's format can be made from its own."""
    return [
        (
            f"self.format != '{name}' || self.candidates.all(c, c.format in {_list(source.converters)})",
            f"a model of format {name} converts into {_or(source.converters)}",
        )
        for name, source in SOURCES.items()
    ]


def entrypoint_rules() -> list[Rule]:
    """Of a model: either a Python file with arguments, or a path."""
    code = [name for name, source in SOURCES.items() if not source.is_file]
    files = [name for name, source in SOURCES.items() if source.is_file]
    return [
        (
            f"!(self.format in {_list(code)}) || (has(self.entrypoint) && !has(self.path))",
            f"format {_or(code)} takes entrypoint, a Python file, and no path",
        ),
        (
            f"!(self.format in {_list(files)}) || (has(self.path) && !has(self.entrypoint) && !has(self.arguments))",
            f"format {_or(files)} takes path, the model's own file, and neither entrypoint nor arguments",
        ),
    ]


def product_rule() -> Rule:
    """Of a spec: where there is a GPU, whatever is built for one product names it."""
    bound = f"c.format in {_list(NEEDING_GPU)} || (has(c.accelerator) && c.accelerator == 'trt')"
    return (
        f"!{HAS_GPU} || (has(self.gpu.product) && self.gpu.product != '')"
        f" || !self.models.exists(m, m.candidates.exists(c, {bound}))",
        f"format {_or(NEEDING_GPU)} and accelerator trt build for one GPU: set spec.gpu.product",
    )


def _list(names: Iterable[str]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


def _or(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
