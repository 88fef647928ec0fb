"""The tables of settings in docs/formats.md, from the lists of what a spec may have."""

import re
from collections.abc import Iterable
from pathlib import Path

from triton_converters.contract.backend_parameters import PARAMETERS
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.overrides import ALLOWED
from triton_operator.api.backend_settings import OPTIONS
from triton_operator.api.server_arguments import ARGUMENTS, Values

PAGE = Path(__file__).parents[2] / "docs/formats.md"
BLOCK = re.compile(
    r"(<!-- made from the lists of allowed settings by `make generate` -->\n).*?(<!-- end -->\n)", re.DOTALL
)
OVERRIDES = re.compile(r"(<!-- made from the overrides by `make generate` -->\n).*?(<!-- end -->\n)", re.DOTALL)
SERVER = re.compile(r"(<!-- made from the arguments of servers by `make generate` -->\n).*?(<!-- end -->\n)", re.DOTALL)
HEAD = "| Backend | Formats | `models[].config.parameters` | `--backend-config` |\n|---|---|---|---|\n"


def pages() -> dict[Path, str]:
    """Return the page by its path, with its table made anew.

    Raises ValueError if the page has no place for the tables.
    """
    text = PAGE.read_text(encoding="utf-8")
    if not all(block.search(text) for block in (BLOCK, SERVER, OVERRIDES)):
        raise ValueError(f"{PAGE} has no place for the tables of settings")
    rows = "".join(_row(backend) for backend in ["", *PARAMETERS])
    text = BLOCK.sub(lambda found: f"{found[1]}\n{HEAD}{rows}\n{found[2]}", text)
    lines = "".join(f"| `{name}` | {_value(name, values)} |\n" for name, values in ARGUMENTS.items())
    text = SERVER.sub(lambda found: f"{found[1]}\n| Argument | Value |\n|---|---|\n{lines}\n{found[2]}", text)
    kinds = dict.fromkeys(kind.words for kind in ALLOWED.values())
    fields = "".join(
        f"| {words} | {_listed(path for path, kind in ALLOWED.items() if kind.words == words)} |\n" for words in kinds
    )
    return {PAGE: OVERRIDES.sub(lambda found: f"{found[1]}\n| Value | Fields |\n|---|---|\n{fields}\n{found[2]}", text)}


def _row(backend: str) -> str:
    formats = _listed(name for name, form in FORMATS.items() if form.backend == backend)
    words = f"`{backend}` | {formats}" if backend else "all | all"
    return f"| {words} | {_listed(PARAMETERS.get(backend, ()))} | {_listed(OPTIONS.get(backend, ()))} |\n"


def _value(name: str, values: Values) -> str:
    return "`NAME=VALUE` or `BACKEND,NAME=VALUE`, above" if name == "--backend-config" else values.words


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
