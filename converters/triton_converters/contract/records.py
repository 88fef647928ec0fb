"""The entries of a results ConfigMap: the controller writes them, and a clean Job takes them for marks.

Standard library only.
"""

from triton_converters.contract.document import DocumentError
from triton_converters.contract.envelope import Outcome

CLAIM = "claim"
"""Entry: uid of the claim that the results lie on. On another claim they are not."""
HISTORY = "history"
"""Entry: the names of the records that each state that served needs."""
FAILURE = "failure."
"""Begins the entry of a Job's failure."""
FINISHED = "finished."
"""Begins the entry that says when a record's Job finished."""


def record_name(stage: str, key: str) -> str:
    """Name of the entry that holds a result."""
    return f"{stage}.{key}"


def is_record(name: str) -> bool:
    """Whether an entry of the name is, or may be, a record: a newer version may have kinds that are not known here."""
    return name not in (CLAIM, HISTORY) and not name.startswith((FAILURE, FINISHED))


def read_record(name: str, text: str) -> Outcome:
    """The result that an entry holds; raises DocumentError where it holds none of that name."""
    outcome = Outcome.from_json(text)
    if outcome.result is None or name != record_name(outcome.stage, outcome.key):
        raise DocumentError(f"not the result {name}")
    return outcome
