"""docs/documents.md: what READMEs of NVIDIA have people do by hand, and what does it here, from documents.yaml."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import yaml

from hack.docs.examples import table
from triton_plugin.telling.columns import cell

PAGE = Path(__file__).parents[2] / "docs/documents.md"
DATA = Path(__file__).with_name("documents.yaml")
KINDS = {"test": "yes", "gpu": "gpu", "image": "image", "decision": "no"}
"""What becomes of a row, by the field that says why."""
WIDTH = 120
"""Characters of a line of the page's text, as in every page."""
HEAD = """\
# NVIDIA's READMEs, step by step

Five READMEs of NVIDIA's [DeepLearningExamples](https://github.com/NVIDIA/DeepLearningExamples) tell, command by
command, how a model is converted, configured, checked and measured. This page has each step, flag, variable and result,
and the field of a TritonDeployment (below `spec`, if it does not begin with `status`) or the command that stands for
it. Each README has the name of its example here.

- **yes**: a CPU is enough. The link leads to the test or the example that runs it.
- **gpu**: only on a GPU; the example's overlay sets it. [Nobody has run one](gpu.md#what-is-unproven).
- **image**: only with an image that nobody publishes any more.
- **no**: by decision.

`base` has smaller numbers where two cores would need more than minutes, and each example's page says why. Checkpoints
lie next to the code, or come from `weights`, which an argument names as `$(WEIGHTS)`. The metrics are computed of the
first `accuracy.maxSamples` samples, by default 256: raise it, and mix data that is sorted by class.
"""
SHARED = """
## Steps that READMEs share

Each README below lists its steps by their numbers. *Only* names those that have a flag, if not all do that have the
step. In the last two steps of `resnet50-tf`, each heading has the other's command; here, the command counts.
"""
RESULTS = """
## Results

The parameters, sections and columns of the READMEs' tables, and their names in [our report](report.md#the-report).
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """A step, flag, variable or result; exactly one of the fields in KINDS says what becomes of it."""

    name: str
    """What the document calls it."""
    field: str = ""
    """A path of the CRD, below spec if it does not begin with status, or a command; empty: there is none."""
    gives: str = ""
    """What the user gets."""
    only: str = ""
    """The documents that have it, between blanks; empty: all that have its step."""
    overlay: str = ""
    """The folder of the example that sets it for a GPU; empty: the document's."""
    sets: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """What the example sets, by the folder of the manifests."""
    test: str = ""
    """A key of the proofs."""
    gpu: str = ""
    image: str = ""
    decision: str = ""

    @property
    def kind(self) -> str:
        """Return what becomes of it."""
        return next(kind for name, kind in KINDS.items() if getattr(self, name))

    def is_in(self, document: str) -> bool:
        """Whether the document has it, if it has the step."""
        return not self.only or document in self.only.split()


@dataclasses.dataclass(frozen=True)
class Step:
    """A step, the commands of which the documents tell, and their flags."""

    row: Row
    commands: tuple[str, ...]
    flags: tuple[Row, ...]


@dataclasses.dataclass(frozen=True)
class Document:
    """A README. Its name is that of its example, a folder below manifests/examples."""

    title: str
    overlay: str
    """The example's folder with the README's numbers."""
    steps: Mapping[int, str]
    """Keys of the steps by their numbers in the README."""
    values: tuple[Row, ...]
    """The variables, and the numbers in the commands."""


@dataclasses.dataclass(frozen=True)
class Data:
    """All of documents.yaml."""

    proofs: Mapping[str, str]
    """pytest's ids of tests, and examples' folders below manifests/examples."""
    steps: Mapping[str, Step]
    documents: Mapping[str, Document]
    """The READMEs by their names, in the order of the page."""
    results: tuple[Row, ...]

    def flags(self, document: str, step: str) -> list[Row]:
        """Return the flags that a step has in a document."""
        return [flag for flag in self.steps[step].flags if flag.is_in(document)]

    def rows(self, document: str) -> Iterator[Row]:
        """Yield every row of a document."""
        found = self.documents[document]
        for step in found.steps.values():
            yield self.steps[step].row
            yield from self.flags(document, step)
        yield from found.values
        yield from (each for each in self.results if each.is_in(document))


def read() -> Data:
    """Return what the file holds. Raises TypeError for a field that no row has."""
    found = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return Data(
        found["proofs"],
        {key: _step(each) for key, each in found["steps"].items()},
        {
            name: Document(**{**each, "values": tuple(Row(**row) for row in each["values"])})
            for name, each in found["documents"].items()
        },
        tuple(Row(**each) for each in found["results"]),
    )


def _step(body: Mapping[str, Any]) -> Step:
    row = {key: each for key, each in body.items() if key not in ("commands", "flags")}
    return Step(Row(**row), tuple(body["commands"]), tuple(Row(**each) for each in body.get("flags", ())))


def pages() -> dict[Path, str]:
    """Return the page by its path."""
    data = read()
    users = Counter(step for each in data.documents.values() for step in each.steps.values())
    shared = [key for key in data.steps if users[key] > 1]
    sections = "".join(_document(data, name, shared) for name in data.documents)
    steps = f"{SHARED}\n{_steps(data, shared)}"
    return {PAGE: f"{HEAD}\n{_counts(data)}{steps}{sections}{RESULTS}\n{_table(data, data.results, 'Result')}"}


def _counts(data: Data) -> str:
    rows = []
    for name, each in data.documents.items():
        counts = Counter(row.kind for row in data.rows(name))
        link = f"[{each.title}](#{each.title.lower().replace(' ', '-')})"
        rows.append([link, f"`{name}`", *(str(counts[kind]) for kind in KINDS.values())])
    return table(("README", "Example", *KINDS.values()), rows)


def _document(data: Data, name: str, shared: Sequence[str]) -> str:
    found = data.documents[name]
    listed = ", ".join(f"{number} {data.steps[step].row.name}" for number, step in found.steps.items())
    own = [step for step in found.steps.values() if step not in shared]
    steps = f"{_steps(data, own)}\n" if own else ""
    head = ("Value", "Object", "`base`", f"`{found.overlay}`", "Kind")
    values = [
        [f"`{row.name}`", _object(row), *(_value(row, folder) for folder in ("base", found.overlay)), _kind(data, row)]
        for row in found.values
    ]
    page = f"The example, with its differences and reasons, is on [its page](examples/{name}.md)."
    return f"\n## {found.title}\n\n{fill(f'{listed}. {page}', WIDTH)}\n\n{steps}{table(head, values)}"


def _steps(data: Data, keys: Sequence[str]) -> str:
    rows: list[Row] = []
    for key in keys:
        step = data.steps[key]
        commands = ", ".join(f"`{each}`" for each in step.commands)
        rows.append(dataclasses.replace(step.row, name=f"**{step.row.name}**: {commands}"))
        rows += [dataclasses.replace(flag, name=f"`{flag.name}`") for flag in step.flags]
    return _table(data, rows, "Step, flag")


def _table(data: Data, rows: Sequence[Row], heading: str) -> str:
    cells = [[row.name, row.only, _object(row), row.gives, _kind(data, row)] for row in rows]
    return table((heading, "Only", "Object", "Gives", "Kind"), cells)


def _object(row: Row) -> str:
    return f"`{row.field}`" if row.field else ""


def _value(row: Row, folder: str) -> str:
    value = row.sets.get(folder)
    return ", ".join(map(str, value)) if isinstance(value, list) else cell(value)


def _kind(data: Data, row: Row) -> str:
    if not row.test:
        why = row.gpu or row.image or row.decision
        return f"{row.kind}: {why}{f' (`{row.overlay}`)' if row.overlay else ''}"
    proof = data.proofs[row.test]
    return f"[yes](../{proof.partition('::')[0] if '::' in proof else f'manifests/examples/{proof}'})"
