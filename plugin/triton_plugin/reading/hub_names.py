"""What a Python file loads from the Hugging Face hub, as its syntax tree shows it. Pure."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from triton_plugin.reading.constants import Constants, constants, text

HUB = "huggingface"
"""Folder next to a step's file with what it loads from the hub, as the hub's libraries keep it."""
MODEL = "models--"
"""Begins the name of a model's folder in it."""
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,95})?")
REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,95}")
PIPELINE = "pipeline"
CALLS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "from_pretrained": (0, ("pretrained_model_name_or_path", "model_id", "repo_id", "checkpoint")),
    "hf_hub_download": (0, ("repo_id",)),
    "snapshot_download": (0, ("repo_id",)),
    "SentenceTransformer": (0, ("model_name_or_path",)),
    "CrossEncoder": (0, ("model_name_or_path", "model_name")),
    PIPELINE: (1, ("model",)),
}
"""Functions that read from the hub: where the name is among their arguments, and what they call it."""
OF_SENTENCES = ("SentenceTransformer",)
"""Functions that look for a name without an owner among the models of ``sentence-transformers``."""


@dataclass(frozen=True)
class Download:
    """A call that reads from the hub, unless the files lie where the hub's libraries look for them."""

    call: str
    """The function, a key of ``CALLS``."""
    name: str
    """The model's name on the hub, OWNER/NAME or NAME; empty: the code has no such text, or another place."""
    revision: str
    """A branch, tag or commit; empty: the main branch."""
    line: int

    @property
    def folder(self) -> str:
        """The model's folder in the hub's."""
        return MODEL + self.name.replace("/", "--")


def downloads(module: ast.Module) -> Iterator[Download]:
    """Yield the calls, whether their names are text or names that the file gives to one text."""
    known = constants(module)
    has_pipeline = any(
        isinstance(node, ast.ImportFrom)
        and (node.module or "").partition(".")[0] == "transformers"
        and any(each.name == PIPELINE for each in node.names)
        for node in ast.walk(module)
    )
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        called = _called(node.func, has_pipeline)
        if called in CALLS:
            yield _download(called, node, known)


def is_kept(path: PurePosixPath) -> bool:
    """Whether a path is that of a file of the hub, and so no code of the folder's author."""
    return any(
        folder == HUB and name.startswith(MODEL) for folder, name in zip(path.parts, path.parts[1:], strict=False)
    )


def _called(function: ast.expr, has_pipeline: bool) -> str:
    """Return the name of a function; empty: it has none, or is a pipeline of something else."""
    if isinstance(function, ast.Name):
        return function.id if function.id != PIPELINE or has_pipeline else ""
    if not isinstance(function, ast.Attribute):
        return ""
    is_other = function.attr == PIPELINE and getattr(function.value, "id", "") != "transformers"
    return "" if is_other else function.attr


def _download(called: str, node: ast.Call, known: Constants) -> Download:
    position, keywords = CALLS[called]
    named = {each.arg: each.value for each in node.keywords}
    given = [*node.args[position : position + 1], *(named[each] for each in keywords if each in named)]
    name = text(given[0], known) if given else ""
    revision = text(named["revision"], known) if "revision" in named else ""
    # What it computes, and what is kept in another place, nobody can tell.
    is_known = NAME.fullmatch(name) and not {"cache_dir", "cache_folder", "local_dir", "repo_type", None} & set(named)
    if "revision" in named and not REVISION.fullmatch(revision):
        is_known = None
    if called in OF_SENTENCES and "/" not in name:
        name = f"sentence-transformers/{name}"
    return Download(called, name if is_known else "", revision if is_known else "", node.lineno)
