"""Whose turn it is to measure: one process's, until it ends."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from tests.local.test_session import an_object
from triton_local.engine import Machine
from triton_local.objects import Objects
from triton_local.turn import Turn
from triton_operator import names


def test_one_takes_the_turn_and_the_next_one_gets_it_when_it_is_given(tmp_path: Path) -> None:
    first, second = Turn(tmp_path / "lock"), Turn(tmp_path / "lock")
    assert first.take()
    assert first.take(), "it is ours already"
    assert not second.take()
    first.give()
    assert second.take()


def test_the_turn_ends_with_the_process_that_has_it(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from triton_local.turn import Turn;"
        " assert Turn(Path(sys.argv[1])).take(); print('taken', flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", script, str(tmp_path / "lock")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"taken\n"
        turn = Turn(tmp_path / "lock")
        assert not turn.take()
        holder.kill()
        holder.wait()
    assert turn.take()


def test_every_user_may_read_the_file(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        Turn(tmp_path / "lock").take()
    finally:
        os.umask(before)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o644


def test_a_link_that_somebody_has_put_there_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    try:
        Turn(tmp_path / "lock").take()
    except OSError:
        pass
    else:
        raise AssertionError("the link was followed")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(("stage", "waits"), [("convert", False), ("profile", True)])
def test_a_job_that_measures_waits_for_its_turn_and_says_so(tmp_path: Path, stage: str, waits: bool) -> None:
    objects = Objects(tmp_path / "objects.json", an_object("first"), {}, lambda _: None)
    machine = Machine(cast(Any, None), objects, Turn(tmp_path / "lock"))
    job = {"spec": {"template": {"metadata": {"labels": {names.STAGE_LABEL: stage}}}}}
    other = Turn(tmp_path / "lock")
    other.take()
    assert machine._may_start(job) != waits
    assert machine.waits == waits
    other.give()
    assert machine._may_start(job)
    assert not machine.waits
