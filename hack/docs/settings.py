"""The tables of settings in docs/formats.md, from the lists of what a spec may have."""

import re
from collections.abc import Iterable
from pathlib import Path

from triton_converters.contract.backend_parameters import PARAMETERS
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.overrides import ALLOWED
from triton_operator.api.backend_settings import OPTIONS
from triton_operator.api.server_flags import NUMBERS, WORDS

PAGE = Path(__file__).parents[2] / "docs/formats.md"
BLOCK = re.compile(
    r"(<!-- made from the lists of allowed settings by `make generate` -->\n).*?(<!-- end -->\n)", re.DOTALL
)
OVERRIDES = re.compile(r"(<!-- made from the overrides by `make generate` -->\n).*?(<!-- end -->\n)", re.DOTALL)
FLAGS = re.compile(r"(<!-- made from the flags of servers by `make generate` -->\n).*?(<!-- end -->\n)", re.DOTALL)
HEAD = "| Backend | Formats | `models[].config.parameters` | `serving.backendConfig` |\n|---|---|---|---|\n"


def pages() -> dict[Path, str]:
    """Return the page by its path, with its table made anew.

    Raises ValueError if the page has no place for the tables.
    """
    text = PAGE.read_text(encoding="utf-8")
    if not all(block.search(text) for block in (BLOCK, FLAGS, OVERRIDES)):
        raise ValueError(f"{PAGE} has no place for the tables of settings")
    rows = "".join(_row(backend) for backend in ["", *PARAMETERS])
    text = BLOCK.sub(lambda found: f"{found[1]}\n{HEAD}{rows}\n{found[2]}", text)
    flags = [(name, f"{least} to {most}") for name, (least, most) in NUMBERS.items()]
    flags += [(name, _listed(words)) for name, words in WORDS.items()]
    lines = "".join(f"| `{name}` | {values} |\n" for name, values in flags)
    text = FLAGS.sub(lambda found: f"{found[1]}\n| Flag | Value |\n|---|---|\n{lines}\n{found[2]}", text)
    fields = "".join(f"| `{path}` | {kind.words} |\n" for path, kind in ALLOWED.items())
    return {PAGE: OVERRIDES.sub(lambda found: f"{found[1]}\n| Field | Value |\n|---|---|\n{fields}\n{found[2]}", text)}


def _row(backend: str) -> str:
    formats = _listed(name for name, form in FORMATS.items() if form.backend == backend)
    words = f"`{backend}` | {formats}" if backend else "all (`backend` left out) | all"
    return f"| {words} | {_listed(PARAMETERS.get(backend, ()))} | {_listed(OPTIONS.get(backend, ()))} |\n"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
