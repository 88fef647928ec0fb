"""The requirements file of a Python step, or what it would have to hold. Pure.

The package of a module is the one that the repository names, or the table's. It is never guessed by the module's name:
an index has a package of almost any name, and anybody may have put it there.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from triton_converters.contract.text import quoted
from triton_plugin.argument_groups import WRITE
from triton_plugin.drafting.triton_repository.distributions import DISTRIBUTIONS, HEADLESS, OF_TORCH, module, normal
from triton_plugin.drafting.triton_repository.files import REQUIREMENTS, ModelFiles, Repository
from triton_plugin.drafting.triton_repository.notes import NAMED, Notes, RequirementsFile, names, place
from triton_plugin.drafting.triton_repository.requirement_lines import RequirementLine
from triton_plugin.reading.python_files import Import

HEAD = """\
# Written by kubectl triton, from what the files of this step import. A line without a version gets the newest one that
# fits. To pin it, write == and the version: the end of the log of the packages Job lists what was installed.
"""


@dataclass(frozen=True)
class _Chosen:
    """What is known of the package that has a module."""

    name: str
    imported: Import
    text: str
    """The requirement; empty: nothing names a package."""
    origin: str
    """The file that names it; empty: the table does."""

    @property
    def words(self) -> str:
        """The module, and where it is imported."""
        return f"{quoted(self.name)} ({place(self.imported.path, self.imported.line)})"


def packages(model: ModelFiles, foreign: Sequence[Import], repository: Repository, notes: Notes) -> str:
    """Return the path of the step's requirements file, and tell what it lacks.

    ``foreign``: what the step imports that neither the server nor its folder has. Empty: the step needs none.
    """
    first: dict[str, Import] = {}
    for each in foreign:
        if module(each.name) not in first or first[module(each.name)].is_guarded:
            first[module(each.name)] = each
    # `from google import protobuf` names the namespace, too.
    within = {name.partition(".")[0] for name in first if "." in name}
    wanted = {name: first[name] for name in sorted(first.keys() - within, key=str.lower)}
    if not wanted:
        return ""
    if model.requirements:
        _compare(model, wanted.items(), repository.requirements[model.requirements], notes)
        return model.requirements
    for path in model.above:
        lines = repository.requirements[path]
        is_plain = all(each.name and not each.bounds_numpy for each in lines)
        if is_plain and all(_named(name, lines) for name in wanted):
            return path
    return _lacking(model, [_choice(name, each, model, repository) for name, each in wanted.items()], notes)


def _lacking(model: ModelFiles, chosen: Sequence[_Chosen], notes: Notes) -> str:
    """Tell what the requirements file that the step lacks has to hold, and return its path, as ``packages`` does."""
    named = [each for each in chosen if each.text]
    unknown = [each for each in chosen if not each.text]
    required = [each for each in unknown if not each.imported.is_guarded]
    path = f"{model.path}/{REQUIREMENTS}"
    if named:
        listed = ", ".join(dict.fromkeys(_said(each) for each in named))
        message = f"it imports {_imports(named)}: list the packages in {quoted(path)}: {listed} ({WRITE} does it)"
        notes.missing.append((model.name, message))
    for lacking in required[:NAMED]:
        message = (
            f"it imports {lacking.words}, and which package has it is not known: write the package's name into"
            f" {quoted(path)}"
        )
        notes.missing.append((model.name, message))
    for lacking in [each for each in unknown if each not in required][:NAMED]:
        message = f"it goes on without {lacking.words}, whose package is not known"
        notes.doubts.append((model.name, message))
    if OF_TORCH & {each.name for each in named}:
        message = (
            "PyTorch is installed with its libraries for GPUs, some gigabytes, which a step on the CPU never uses: name"
            " PyTorch's index of builds for CPUs in spec.conversion.indexSecretRef (docs/python-steps.md, Packages of a"
            " step)"
        )
        notes.doubts.append((model.name, message))
    if not named and not required:
        return ""
    notes.requirements_files.append(
        RequirementsFile(path, _text(named, required), tuple(dict.fromkeys(each.text for each in named)))
    )
    return path


def is_foreign(imported: Import, servers: Iterable[str], local: Iterable[str]) -> bool:
    """Whether a name is neither Python's, nor one that the server or the step's folder has."""
    return imported.name.partition(".")[0] not in {*sys.stdlib_module_names, *servers, *local}


def _compare(
    model: ModelFiles, wanted: Iterable[tuple[str, Import]], lines: Sequence[RequirementLine], notes: Notes
) -> None:
    """Tell what the step's own file leaves open, and what it imports that no line names."""
    for line in [line for line in lines if not line.name][:NAMED]:
        where = place(model.requirements, line.number)
        message = f"{where}: {quoted(line.text)} is no plain requirement, such as timm==1.0.9: replace it"
        if line.is_open:
            message = f"{where} says what is to be filled in: replace it"
        notes.missing.append((model.name, message))
    for line in [line for line in lines if line.bounds_numpy][:NAMED]:
        message = (
            f"{place(model.requirements, line.number)} asks for {quoted(line.text)}: a step gets the server's NumPy,"
            " and another version ends with PackageNotFound: leave its version open"
        )
        notes.doubts.append((model.name, message))
    lacking = [(name, each) for name, each in wanted if not each.is_guarded and not _named(name, lines)]
    # A line may bring what it does not name, as transformers brings tokenizers.
    for name, each in lacking[:NAMED] if not any(line.is_open for line in lines) else ():
        advice = f"add {DISTRIBUTIONS[name][0]}" if name in DISTRIBUTIONS else "add its package"
        message = (
            f"it imports {quoted(name)} ({place(each.path, each.line)}), which no line of {quoted(model.requirements)}"
            f" names: {advice}, unless a package of that file brings it"
        )
        notes.doubts.append((model.name, message))


def _named(name: str, lines: Iterable[RequirementLine]) -> RequirementLine | None:
    """Return the line with a package that has the module; None: no line names one."""
    packages = _packages(name)
    return next((each for each in lines if each.name in packages), None)


def _packages(name: str) -> tuple[str, ...]:
    """Return the packages that have the module if somebody names them; the module's own name is one of them."""
    return *DISTRIBUTIONS.get(name, ()), normal(name)


def _choice(name: str, imported: Import, model: ModelFiles, repository: Repository) -> _Chosen:
    """Return the package as the repository names it, or else as the table does."""
    for path in model.above:
        if (line := _named(name, repository.requirements[path])) is not None:
            return _Chosen(name, imported, _headless(line.text, line.name), path)
    for each in _packages(name):
        if each in repository.installed:
            text, origin = repository.installed[each]
            return _Chosen(name, imported, _headless(text, each), origin)
    return _Chosen(name, imported, next(iter(DISTRIBUTIONS.get(name, ())), ""), "")


def _headless(text: str, name: str) -> str:
    """Return a requirement without what needs a desktop: the same package, in the same version."""
    return HEADLESS[name] + text[len(name) :] if name in HEADLESS and text.lower().startswith(name) else text


def _said(chosen: _Chosen) -> str:
    return f"{chosen.text} of {quoted(chosen.origin)}" if chosen.origin else chosen.text


def _imports(named: Sequence[_Chosen]) -> str:
    """Return the names of modules, and where the first of them is imported."""
    first = named[0].imported
    return f"{names(each.name for each in named)} ({place(first.path, first.line)})"


def _text(named: Iterable[_Chosen], unknown: Iterable[_Chosen]) -> str:
    """Return the requirements file."""
    return HEAD + "".join(f"{line}\n" for line in (*dict.fromkeys(_lines(named)), *_open_lines(unknown)))


def _lines(named: Iterable[_Chosen]) -> Iterator[str]:
    seen: set[str] = set()
    for each in named:
        if each.text not in seen:
            origin = f", as {quoted(each.origin)} has it" if each.origin else ""
            yield f"{each.text}  # {each.name}: {place(each.imported.path, each.imported.line)}{origin}"
        seen.add(each.text)


def _open_lines(unknown: Iterable[_Chosen]) -> Iterator[str]:
    for each in unknown:
        where = place(each.imported.path, each.imported.line)
        yield f"# TODO: write the name of the package with {quoted(each.name)}, which {where} imports, in this place"
