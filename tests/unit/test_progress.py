import threading
import time

import pytest

from hack.progress import step


def test_a_step_says_what_it_does_how_long_that_usually_takes_and_how_long_it_took(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with step("Kubernetes v1.34.4", "8 min"):
        begun = capsys.readouterr()
    done = capsys.readouterr()
    assert begun.err == "Kubernetes v1.34.4, usually 8 min on two cores ...\n"
    assert done.err == "Kubernetes v1.34.4: 0.0 s\n"
    assert begun.out == done.out == "", "results go there"


def test_a_long_step_says_now_and_then_that_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    with step("helm", remind_seconds=0.01):
        time.sleep(0.1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "helm ..."
    assert lines[1].startswith("helm: still at it after")
    assert lines[-1].startswith("helm: 0.")


def test_a_step_that_fails_is_not_said_to_be_done(capsys: pytest.CaptureFixture[str]) -> None:
    threads = threading.active_count()
    with pytest.raises(ValueError, match="broken"), step("helm"):
        raise ValueError("broken")
    assert capsys.readouterr().err == "helm ...\n"
    assert threading.active_count() == threads
