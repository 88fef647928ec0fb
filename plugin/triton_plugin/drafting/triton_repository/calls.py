"""The models that Python steps ask by themselves: ``calls`` of an entry, and the entries of those models. Pure."""

import re
from collections.abc import Sequence

from triton_converters.contract.text import quoted
from triton_plugin.drafting.triton_repository.files import ENSEMBLE, PYTHON, ModelFiles, Repository
from triton_plugin.drafting.triton_repository.members import NEWEST, Entry, member
from triton_plugin.drafting.triton_repository.notes import Notes, names
from triton_plugin.drafting.triton_repository.requested import requested_models

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def called(repository: Repository, steps: Sequence[tuple[ModelFiles, Entry]], notes: Notes) -> list[Entry]:
    """Set ``calls`` of the entries of steps that ask other models; return the entries of models that are no step.

    What cannot be served is told, and what cannot be read in the code.
    """
    added: dict[str, Entry] = {}
    for model, entry in steps:
        if model.backend != PYTHON or "entrypoint" not in entry:
            continue
        found = _names(repository, model, entry["entrypoint"], notes)
        for name in found:
            if _is_step(name, model, steps, notes) or name in added:
                continue
            if (other := _allowed(repository, model, name, notes)) is not None:
                largest = entry["config"]["maxBatchSize"]
                added[name] = member(other, name, NEWEST, largest, (), repository, notes)
        if found:
            entry["calls"] = list(found)
    return list(added.values())


def _names(repository: Repository, model: ModelFiles, file: str, notes: Notes) -> tuple[str, ...]:
    found = repository.names_asked(model, file)
    guessed = [each for each in found if each not in requested_models(file, repository.modules).names]
    if requested_models(file, repository.modules).is_computed:
        if guessed:
            notes.doubts.append(
                (
                    model.name,
                    f"it computes names of models that it asks: calls has those in its code and parameters,"
                    f" {names(guessed)}",
                )
            )
        else:
            message = "it asks models whose names are not in its code or parameters"
            notes.missing.append((model.name, f"{message}: list them in its calls, and each in models"))
    return found


def _is_step(name: str, asking: ModelFiles, steps: Sequence[tuple[ModelFiles, Entry]], notes: Notes) -> bool:
    """Whether a model that is asked is a step already; it must have the name by which the code asks it."""
    served = [(model, entry["name"]) for model, entry in steps if model.name == name]
    if not served:
        return False
    if any(model.backend == PYTHON for model, _ in served):
        notes.faults.append((asking.name, _of_python(name)))
    elif name not in (served_name for _, served_name in served):
        notes.faults.append((asking.name, _renamed(name)))
    return True


def _allowed(repository: Repository, asking: ModelFiles, name: str, notes: Notes) -> ModelFiles | None:
    """Return the model that is asked; None: it cannot be, as is told."""
    found = repository.sibling(asking.path, name)
    if found is None:
        words = (
            f"it asks model {quoted(name)}, of which the repository has no folder: add it, with config.pbtxt and the"
            " model's file"
        )
    elif found.backend == ENSEMBLE:
        words = f"it asks the ensemble {quoted(name)}: let its code ask the models of that ensemble one by one"
    elif found.backend == PYTHON:
        words = _of_python(name)
    elif not NAME.fullmatch(name):
        words = _renamed(name)
    else:
        return found
    notes.faults.append((asking.name, words))
    return None


def _of_python(name: str) -> str:
    return f"it asks the Python model {quoted(name)}: connect the two by an ensemble, or write them as one file"


def _renamed(name: str) -> str:
    return f"it asks model {quoted(name)}, which an object cannot name so: rename its folder, and in the code"
