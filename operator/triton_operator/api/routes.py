"""CEL rules from the registry of formats: what the API server takes is what the converters can do.

Each is a pair of expression and message; the message names what works.
"""

from collections.abc import Iterable

from triton_converters.contract.formats import CONVERTER_TENSORFLOW, ENSEMBLE, FORMATS, HPS, SOURCES

Rule = tuple[str, str]
MODELS = {name: source for name, source in SOURCES.items() if name != ENSEMBLE}
"""What spec.models[].format may be."""
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
        if name != HPS
    ]


def conversion_rules() -> list[Rule]:
    """Of a model: every candidate's format can be made from its own."""
    return [
        (
            f"self.format != '{name}' || !has(self.candidates)"
            f" || self.candidates.all(c, c.format in {_list(source.converters)})",
            f"a model of format {name} converts into {_or(source.converters)}",
        )
        for name, source in MODELS.items()
        if name != HPS
    ]


def hps_rules() -> list[Rule]:
    """Of a model: embedding tables are served in one way."""
    return [
        (
            f"(self.format == '{HPS}') != has(self.candidates)",
            f"candidates is required; format {HPS} takes none: it is served in one way",
        ),
        (f"self.format == '{HPS}' || !has(self.hps)", f"hps goes with format {HPS}"),
    ]


def image_rule() -> Rule:
    """Of a spec: the models of an ensemble run in one Job."""
    tensorflow = _list(name for name, source in MODELS.items() if source.image == CONVERTER_TENSORFLOW)
    return (
        f"self.models.all(m, m.format in {tensorflow} || m.format == '{HPS}')"
        f" || !self.models.exists(m, m.format in {tensorflow})",
        "models of an ensemble are all TensorFlow's or none is: one image converts them",
    )


def entrypoint_rules() -> list[Rule]:
    """Of a model: either a Python file with arguments, or a path."""
    code = [name for name, source in MODELS.items() if not source.is_file]
    files = [name for name, source in MODELS.items() if source.is_file]
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
        f" || !self.models.exists(m, has(m.candidates) && m.candidates.exists(c, {bound}))",
        f"format {_or(NEEDING_GPU)} and accelerator trt build for one GPU: set spec.gpu.product",
    )


def _list(names: Iterable[str]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


def _or(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
