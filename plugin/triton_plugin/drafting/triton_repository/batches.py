"""The batches of Python steps that ask a model of one sample. Pure."""

from collections.abc import Iterator, Sequence

from triton_converters.contract.text import quoted
from triton_plugin.drafting.triton_repository.files import ModelFiles, Repository
from triton_plugin.drafting.triton_repository.members import Entry
from triton_plugin.drafting.triton_repository.notes import Notes, names
from triton_plugin.drafting.triton_repository.pbtxt import Config
from triton_plugin.drafting.triton_repository.requested import asks_in_nested_loops


def largest_batch(
    repository: Repository, steps: Sequence[tuple[ModelFiles, Entry]], declared: int, notes: Notes
) -> int:
    """Return the ensemble's largest batch: 1 if a step may pass more to a model that takes one sample.

    The entry of such a step gets 1, too. ``declared``: the ensemble's largest batch by its config.pbtxt. What is
    written is told, with what to write instead if the code asks for each sample. Where it visibly does, all stays.
    """
    largest = declared
    for model, entry in steps if declared > 1 else ():
        config = entry.get("config", {})
        own = config.get("maxBatchSize", 0)
        found = list(_of_one_sample(repository, model, entry)) if own > 1 else []
        whole = [each for each in found if not asks_in_nested_loops(entry["entrypoint"], each[0], repository.modules)]
        for name, takes in whole or found:
            asks = f"it takes batches of {own}, and model {quoted(name)}, which it asks, takes one sample ({takes})"
            words = (
                "1 is written for its maxBatchSize and the ensemble's; if its code asks for each sample, write"
                f" {own} back, and {declared} for the ensemble"
                if whole
                else f"its code seems to ask for each sample, so {own} is kept; if it does not, write 1 for its"
                " maxBatchSize and the ensemble's"
            )
            notes.doubts.append((model.name, f"{asks}: {words}"))
        if whole:
            config["maxBatchSize"] = largest = 1
            if config.get("dynamicBatching", {}).pop("preferredBatchSizes", None):
                notes.left_out.append((model.name, "dynamic_batching.preferred_batch_size: its batches are of 1"))
    return largest


def _of_one_sample(repository: Repository, asking: ModelFiles, entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the models of one sample that a step asks, each with what shows it."""
    for name in entry.get("calls", ()):
        other = repository.sibling(asking.path, name)
        if other is not None and (takes := _takes(other.fields)):
            yield name, takes


def _takes(config: Config) -> str:
    """Return what shows that a model takes one sample; empty: nothing does."""
    if config.max_batch_size == 1:
        return "max_batch_size 1"
    shapes = {each.name: each.dims for each in config.input}
    single = {name: dims for name, dims in shapes.items() if dims[:1] == [1]}
    # A number that all samples share, such as a threshold, is [1] too.
    if config.max_batch_size or (len(single) < len(shapes) and all(len(dims) == 1 for dims in single.values())):
        return ""
    return f"input {names(list(single))}" if single else ""
