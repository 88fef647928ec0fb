"""docs/renamed.md: the old names of the spec and of the status, and the new ones, from the operator's tables."""

from collections.abc import Iterator
from pathlib import Path

from triton_operator.api import old_status
from triton_operator.api.renamed import FIELDS, VALUES, line

PAGE = Path(__file__).parents[2] / "docs/renamed.md"
HEAD = """\
# Renamed fields

Some fields and values of a `TritonDeployment` had other names before. The operator refuses these: the
conditions have the reason `FieldRenamed`, and the message says what to write. Until then nothing new is started and
nothing deleted, and the active revision stays as it is, with its pods. `kubectl triton validate FILE` lists all old
names of a file.

The CustomResourceDefinition keeps the old names for one release, so that stored objects do too. Durations are texts
with a unit now (`us`, `ms`, `s`, `m` or `h`). Fields that Kubernetes has as well, such as `activeDeadlineSeconds`, stay
numbers. In the arguments of your code, `$(DATA)` is `$(DATASET)` now; the operator replaces both, and to write the new
word repeats no Job. [Upgrade](install.md#upgrade) says what to do when. This page is generated: `make generate`.

## Spec

| Before, in `spec` | Now, in `spec` | An example before | Now |
|---|---|---|---|
"""
OF_VALUES = """
Values:

| In `spec` | Before | Now |
|---|---|---|
"""
OF_STATUS = """
## Status

The operator reads what an older one wrote, and writes the new names in its next pass. Programs that read the status
have to read the new names. A time has three significant digits; the ConfigMap `NAME-results` has whole microseconds.

| In `status` | Before | Now | An example before | Now |
|---|---|---|---|---|
"""
PLACES = {
    "CandidateStatus": "candidates[]",
    "SearchStatus": "search[]",
    "ServingStatus": "serving",
    "SaturationStatus": "performance.saturation",
    "RowStatus": "performance.*[]",
    "SourceStatus": "source",
    "Images": "images`, `newImages",
}
"""Where the status has the types with old names."""
EXAMPLES = {
    "commands": 2,
    "revision": "v1.2",
    "resolved": "9d66e3ea5cf2f4a9c0ad5e7c7ac1bbd1f7cb9a1e",
    "usedMemoryBytes": 1234173952,
    "configuration": {"maxBatchSize": 8, "instances": 2, "dynamicBatching": True, "maxQueueDelayMicroseconds": 100},
}
USUAL = {"integer": 18342, "string": "f0edfdacf60d63da"}
"""The examples of all others, by the types of the old fields."""


def pages() -> dict[Path, str]:
    """Return the page by its path."""
    rows = [
        (each.old, each.new, line(each.old, each.example), line(each.new, each.now(each.example))) for each in FIELDS
    ]
    fields = "".join(f"| `{'` | `'.join(row)}` |\n" for row in rows)
    values = "".join(f"| `{each.path}` | `{old}` | `{new}` |\n" for each in VALUES for old, new in each.now.items())
    return {PAGE: HEAD + fields + OF_VALUES + values + OF_STATUS + "".join(_of_status())}


def _of_status() -> Iterator[str]:
    for kind, renamed in old_status.FIELDS.items():
        for old, field in renamed.items():
            before = EXAMPLES.get(old) or USUAL[field.schema["type"]]
            now = field.now(before)
            cells = (PLACES[kind], old, field.new, line(old, before), line(field.new, now))
            yield f"| `{'` | `'.join(cells)}` |\n"
