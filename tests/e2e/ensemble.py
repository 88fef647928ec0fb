"""Embedding tables and a dense model as one."""

from dataclasses import dataclass
from typing import Any

from tests.e2e.state import State
from tests.e2e.suite import Suite


@dataclass(frozen=True)
class Scorer:
    """The Ready object, and what the hps backend was told."""

    state: State
    parameter_server: dict[str, Any]
    table_bytes: int


def run(suite: Suite) -> Scorer:
    """To Ready; then a look at the revision."""
    applied = suite.new("ensemble", "ensemble")
    state = applied.wait_ready(applied.apply()).state
    told = suite.workbench.json(f"/repository/.triton-operator/revisions/{state.revision}/ps.json")
    folder = told["models"][0]["sparse_files"][0]
    return Scorer(state, told, int(suite.workbench.run("stat", "--format=%s", f"{folder}/emb_vector")))
