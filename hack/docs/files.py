"""docs/files.md: what people give as a model, from the table of kinds."""

from pathlib import Path

from triton_converters.found.kinds import FileKind

PAGE = Path(__file__).parents[2] / "docs/files.md"
HEAD = """\
# What a file is

If a model of the spec has a `path` and no `format`, the source Job looks into the file or folder, whatever its name,
and runs nothing in it. `kubectl triton run` and `init` look in the same way before anything is pushed. All but the
first table is `FormatNotFound`, and the message says what to do. A folder that is no model itself is refused with the
paths of the models in it, or with what its files are. This page is generated: `make generate`.

## Served

| What it is | Format |
|---|---|
"""
OF_WEIGHTS = """
A folder of a [Triton model repository](formats.md#a-model-that-you-serve-already) has the format of the file inside.

## Weights without a model

The message shows the short Python file with [`get_model`](user-files.md#get_model-modelsentrypoint) that is missing.

"""
OF_OTHERS = """
## Refused

"""


def pages() -> dict[Path, str]:
    """Return the page by its path."""
    served = "".join(f"| {kind.words} | `{kind.format}` |\n" for kind in FileKind if kind.format)
    weights = "".join(f"- {kind.words}\n" for kind in FileKind if kind.is_weights)
    others = "".join(f"- {kind.words}\n" for kind in FileKind if kind.advice)
    return {PAGE: HEAD + served + OF_WEIGHTS + weights + OF_OTHERS + others}
