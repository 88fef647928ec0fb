"""The tools really keep clocks, files, chance and the network from what decides."""

import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("api", "candidates", "jobs", "observed", "planning", "resources", "rollout", "stages")
CONTRACTS = ConfigParser()
CONTRACTS.read(ROOT / ".importlinter")


def of_contract(name: str) -> set[str]:
    """The modules and rooms that a contract of the import layers is about."""
    return set(CONTRACTS[f"importlinter:contract:{name}"]["source_modules"].split())


def places() -> list[str]:
    """A file of each module and room that is kept from the machine; in a room, one that is new."""
    modules = sorted(each.partition(".")[2].replace(".", "/") for each in of_contract("machine"))
    return [f"{each}/new.py" if each in ROOMS else f"{each}.py" for each in modules]


def refused(place: str, code: str) -> set[str]:
    """The rules that ruff says a file of that code would break there."""
    command = [
        "check",
        "--no-cache",
        "--output-format",
        "concise",
        "--stdin-filename",
        f"operator/triton_operator/{place}",
        "-",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command], cwd=ROOT, input=code, capture_output=True, text=True, check=False
    )
    return {line.split()[1] for line in done.stdout.splitlines() if line.startswith("operator/")}


@pytest.mark.parametrize("place", places())
def test_what_decides_may_not_ask_the_clock_nor_open_a_file(place: str) -> None:
    asks = '"""Ask."""\n\nfrom datetime import UTC, datetime\n\nNOW = datetime.now(UTC)\n'
    assert refused(place, asks) == {"TID251"}
    assert refused("runtime/new.py", asks) == set()
    assert "PTH123" in refused(place, '"""Read."""\n\nTEXT = open("x")\n')


def test_every_room_that_decides_is_kept_from_the_machine() -> None:
    pure, machine = of_contract("pure"), of_contract("machine")
    assert machine - pure == {"triton_operator.names", "triton_operator.settings"}
    assert pure <= machine
    assert {f"triton_operator.{room}" for room in ROOMS} <= pure
