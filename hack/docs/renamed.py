"""docs/renamed.md: the old names of the spec and what to write now, from the operator's table."""

from pathlib import Path

from triton_operator.api.renamed import FIELDS, VALUES, line

PAGE = Path(__file__).parents[2] / "docs/renamed.md"
HEAD = """\
# Renamed fields

Some fields and values of a `TritonDeployment` had other names before. The operator refuses these: the
conditions have the reason `FieldRenamed`, and the message says what to write. Until then nothing is started or deleted,
and the active revision stays as it is, with its pods. `kubectl triton validate FILE` lists all old names of a file.

The CustomResourceDefinition keeps the old names for one release, so that stored objects do too. Durations are texts
with a unit now (`us`, `ms`, `s`, `m` or `h`). Fields that Kubernetes has as well, such as `activeDeadlineSeconds`, stay
numbers. [Upgrade](install.md#upgrade) says what to do when. This page is generated: `make generate`.

## Fields

| Before, in `spec` | Now, in `spec` | An example before | Now |
|---|---|---|---|
"""
OF_VALUES = """
## Values

| In `spec` | Before | Now |
|---|---|---|
"""


def pages() -> dict[Path, str]:
    """Return the page by its path."""
    rows = [
        (each.old, each.new, line(each.old, each.example), line(each.new, each.now(each.example))) for each in FIELDS
    ]
    fields = "".join(f"| `{'` | `'.join(row)}` |\n" for row in rows)
    values = "".join(f"| `{each.path}` | `{old}` | `{new}` |\n" for each in VALUES for old, new in each.now.items())
    return {PAGE: HEAD + fields + OF_VALUES + values}
