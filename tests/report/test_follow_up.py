"""Every command that is printed asks the cluster and namespace that were asked."""

import re
from dataclasses import replace

import pytest

from tests.report import test_approval, test_history, test_update_images
from tests.report.subjects import golden, ready
from triton_plugin.__main__ import main
from triton_plugin.errors import SubjectError
from triton_plugin.reading.subject import Subject, parse
from triton_plugin.telling.explain import explain
from triton_plugin.telling.history import latest_effect, rollback_revision
from triton_plugin.telling.request import first_request

OPTIONS = ("--kubeconfig", "a file", "--context", "x")
PLACE = "--kubeconfig 'a file' --context x"
TWO = (test_history.revision(test_history.NEWEST), test_history.revision(test_history.BEFORE))
SUBJECTS = {
    "approve": test_approval.subject(),
    "rollback": test_history.subject(*TWO),
    "update-images": test_update_images.subject("digits", "newer-images"),
}


def check(said: str) -> None:
    """Fail unless each command has the options of the cluster."""
    commands = re.split(r"(?=\bkubectl (?:triton|get|port-forward) )", said)[1:]
    assert commands
    assert [each for each in commands if PLACE not in each] == []


@pytest.mark.parametrize(
    "words",
    [["approve", "digits"], ["rollback", "digits"], ["update-images", "digits"]],
    ids=" ".join,
)
def test_a_command_says_where_to_go_on(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = replace(SUBJECTS[words[0]], options=OPTIONS)

    class FakeCluster:
        """Holds one object."""

        def __init__(self, *_: str | None) -> None:
            """There is always a cluster."""

        def subject(self, name: str) -> Subject:
            return found

        def patch_spec(self, *_: object) -> None:
            """Take a change."""

        def update_images(self, *_: object) -> None:
            """Take a request."""

    monkeypatch.setattr("triton_plugin.commands.arguments.Cluster", FakeCluster)
    assert main(words) == 0
    check(capsys.readouterr().out)


def test_what_is_told_of_an_object_says_where_to_go_on() -> None:
    check(explain(parse(*golden("new-object"), OPTIONS)))
    check(first_request(replace(ready(), options=OPTIONS)))
    held = test_history.subject(*TWO, named=test_history.NEWEST)
    check(latest_effect(replace(held, options=OPTIONS)))
    alone = replace(test_history.subject(TWO[0]), options=OPTIONS)
    with pytest.raises(SubjectError) as refused:
        rollback_revision(alone, None)
    check(str(refused.value))
