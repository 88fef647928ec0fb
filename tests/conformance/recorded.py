"""The statuses that the development cluster's kubelet told of the shell's pods, in a file that the full run writes."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.conformance.statuses import Told

FILE = Path(__file__).with_name("recorded.json")


def recorded() -> dict[str, Told]:
    """What the kubelet said of each pod, by its name."""
    found: dict[str, Told] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def record(said: Mapping[str, Told]) -> None:
    """Keep what the kubelet says now."""
    FILE.write_text(json.dumps(said, indent=1, sort_keys=True) + "\n", encoding="utf-8")
