"""Names of records for a reader: by stage and candidate in place of the hash of what was asked."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from triton_converters.contract.records import FINISHED
from triton_operator import names

HASHED = re.compile(r"(?P<kind>.*\.)?(?P<stage>\w+)\.(?P<key>[0-9a-f]{16})")
"""What a record is about: the answer of a Job, if it says nothing else, and the Job's stage and key."""


def readable(records: Mapping[str, str], jobs: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The name of each record: `convert.onnx-fp32` of a Job that is there, `convert.earlier-2` of one that is gone.

    Those that are gone count in the order in which they finished.
    """
    candidates = {}
    for labels in (job["metadata"]["labels"] for job in jobs):
        candidate = labels.get(names.CANDIDATE_LABEL, "")
        candidates[labels[names.STAGE_LABEL], labels[names.KEY_LABEL]] = candidate
    told: dict[tuple[str, str], str] = {}
    for stage, key in sorted(_hashes(records), key=lambda each: (records.get(f"{FINISHED}{'.'.join(each)}", ""), each)):
        candidate = candidates.get((stage, key))
        name = f"{stage}.{candidate}".removesuffix(".")
        if candidate is None or name in told.values():
            number = 1 + sum(each.startswith(f"{stage}.earlier-") for each in told.values())
            name = f"{stage}.earlier-{number}"
        told[stage, key] = name
    return {record: _named(record, told) for record in records}


def _hashes(records: Iterable[str]) -> set[tuple[str, str]]:
    found = filter(None, map(HASHED.fullmatch, records))
    return {(each["stage"], each["key"]) for each in found}


def _named(record: str, told: Mapping[tuple[str, str], str]) -> str:
    found = HASHED.fullmatch(record)
    return record if found is None else (found["kind"] or "") + told[found["stage"], found["key"]]
