"""The entries of a results ConfigMap: the controller writes them, and a clean Job keeps what they name.

Standard library only.
"""

from triton_converters.contract.document import DocumentError
from triton_converters.contract.envelope import INFLATED_LIMIT_BYTES, Outcome, inflated_bytes, read_again

CLAIM = "claim"
"""Entry with the name and the uid, NAME/UID, of the claim that holds the results; another claim does not have them."""
HISTORY = "history"
"""Entry with the names of the records that each once active state needs."""
FAILURE = "failure."
"""Prefix of an entry with a Job's failure, by the Job's name, or that of figures, by the name of their record."""
DAMAGED = "damaged."
"""Prefix of an entry with what became of a revision, by the revision's key."""
SOAK = "soak."
"""Prefix of an entry with a change of the active revision and what its soak found, by the uid of the Deployment that
became active."""
ACTIVE = f"{SOAK}active"
"""Entry with the active revision's Deployment."""
FOLLOWING = "following"
"""Entry with what looks found of a source that is followed."""
FINISHED = "finished."
"""Prefix of an entry with the time at which a record's Job finished."""

IMAGE = "image."
"""Prefix of an entry with the ID of the image that the server of a record's Job, or the reference's framework, ran in,
as the kubelet reported it."""

GPU = "gpu."
"""Prefix of an entry with what the node says of its GPU on which the server of a record's Job ran."""


def record_name(stage: str, key: str) -> str:
    """Name of the entry that holds a result."""
    return f"{stage}.{key}"


def is_record(name: str) -> bool:
    """Whether an entry with the name is or may be a record; a newer version may have kinds that are unknown here."""
    prefixes = (DAMAGED, FAILURE, SOAK, FINISHED, IMAGE, GPU)
    return name not in (CLAIM, HISTORY, FOLLOWING) and not name.startswith(prefixes)


def record_bytes(text: str) -> int:
    """Return what reading an entry costs, as the bytes of its JSON; one that cannot be inflated counts as a whole."""
    try:
        return inflated_bytes(text)
    except DocumentError:
        return INFLATED_LIMIT_BYTES


def read_record(name: str, text: str) -> Outcome:
    """Return the result that an entry holds; raises DocumentError if it does not hold the result of that name."""
    outcome = read_again(text)
    if outcome.result is None or name != record_name(outcome.stage, outcome.key):
        raise DocumentError(f"it does not hold the result {name}")
    return outcome
