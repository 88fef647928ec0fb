"""Format ``hps``: write every table as Merlin's Hierarchical Parameter Server reads it."""

from pathlib import Path

from triton_converters.claim_store import embedding_tables
from triton_converters.convert.task import Task
from triton_converters.load.hps import Lookup


def convert(task: Task, directory: Path) -> None:
    """Write ``<number>/{key,emb_vector}`` of each table, and the index; raises OSError if no space is left."""
    assert isinstance(task.framework, Lookup)
    embedding_tables.write_tables(task.framework.tables, directory)
