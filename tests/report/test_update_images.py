"""`kubectl triton update-images`: what it lists, and for which objects it asks."""

import copy
from typing import ClassVar

import pytest

from tests.report.subjects import expected, golden
from triton_plugin import __main__
from triton_plugin.reading.subject import Subject, parse


def subject(name: str, case: str) -> Subject:
    body, _ = copy.deepcopy(golden(case))
    body["status"] = expected(case)
    body["metadata"]["name"] = name
    return parse(body, None)


class FakeCluster:
    """Holds two objects, one of which keeps other images than the installation has; notes what is asked of it."""

    objects: ClassVar = {name: subject(name, case) for name, case in (("digits", "newer-images"), ("faces", "ready"))}
    asked: ClassVar[list[str]] = []

    def __init__(self, *_: str | None) -> None:
        """There is always a cluster."""

    def subject(self, name: str) -> Subject:
        return self.objects[name]

    def subjects(self) -> list[Subject]:
        return list(self.objects.values())

    def update_images(self, name: str, moment: str) -> None:
        self.asked.append(name)


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> type[FakeCluster]:
    monkeypatch.setattr(FakeCluster, "asked", [])
    monkeypatch.setattr("triton_plugin.commands.arguments.Cluster", FakeCluster)
    monkeypatch.setenv("COLUMNS", "120")
    return FakeCluster


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [([], []), (["--all"], ["digits"]), (["digits"], ["digits"]), (["faces", "digits"], ["digits"])],
)
def test_it_lists_what_differs_and_asks_for_what_is_named(
    arguments: list[str], asked: list[str], cluster: type[FakeCluster], capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["update-images", *arguments]) == 0
    assert cluster.asked == asked
    out = capsys.readouterr().out
    (row,) = [line.split() for line in out.splitlines() if "example/server:1" in line]
    assert row == ["digits", "server", "example/server:1", "example/server:2"]
    assert ("the operator was asked for these images" in out) == bool(asked)
    assert ("Nothing was asked for" in out) != bool(asked)


def test_a_dry_run_asks_for_nothing(cluster: type[FakeCluster], capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["update-images", "--all", "--dry-run"]) == 0
    assert (cluster.asked, "Nothing was asked for" in capsys.readouterr().out) == ([], True)


def test_an_object_that_has_the_images_is_asked_for_nothing(
    cluster: type[FakeCluster], capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["update-images", "faces"]) == 0
    assert cluster.asked == []
    assert capsys.readouterr().out == "No object keeps other images than the installation has.\n"


def test_a_digest_of_an_earlier_request_is_no_image(
    cluster: type[FakeCluster], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    body, _ = copy.deepcopy(golden("newer-images"))
    body["status"] = expected("newer-images")
    body["status"]["images"]["requestDigest"] = "0123456789"
    monkeypatch.setattr(FakeCluster, "objects", {"digits": parse(body, None)})
    assert __main__.main(["update-images"]) == 0
    out = capsys.readouterr().out
    assert "example/server:2" in out
    assert "requestDigest" not in out


@pytest.mark.parametrize("arguments", [["digits", "--all"], ["--all", "digits", "faces"]])
def test_names_beside_all_are_refused(
    arguments: list[str], cluster: type[FakeCluster], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        __main__.main(["update-images", *arguments])
    assert (ended.value.code, cluster.asked) == (2, [])
    assert "not allowed with argument" in capsys.readouterr().err


def test_images_that_were_asked_for_and_failed_are_not_asked_for_again(
    cluster: type[FakeCluster], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    body, _ = copy.deepcopy(golden("newer-images"))
    body["status"] = expected("newer-images")
    body["status"]["images"] |= body["status"]["newImages"]
    for each in body["status"]["conditions"]:
        if each["type"] == "UpToDate":
            each |= {"status": "False", "reason": "AllCandidatesFailed"}
    monkeypatch.setattr(FakeCluster, "objects", {"digits": parse(body, None)})
    assert __main__.main(["update-images", "digits"]) == 0
    out = capsys.readouterr().out
    assert cluster.asked == []
    assert "TritonDeployment digits: asked for already, not active yet (AllCandidatesFailed)" in out
    assert "to see why, type: kubectl triton explain digits" in out


def test_an_object_that_is_rolled_back_takes_no_images(
    cluster: type[FakeCluster], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    body, _ = copy.deepcopy(golden("newer-images"))
    body["status"] = expected("newer-images")
    (selected,) = [each for each in body["status"]["conditions"] if each["type"] == "Selected"]
    selected["reason"] = "RolledBack"
    monkeypatch.setattr(FakeCluster, "objects", {"digits": parse(body, None)})
    assert __main__.main(["update-images", "--all"]) == 0
    assert cluster.asked == []
    assert "TritonDeployment digits: takes no images while spec.rollout.revision is set" in capsys.readouterr().out
    body["metadata"]["generation"] += 1
    monkeypatch.setattr(FakeCluster, "objects", {"digits": parse(body, None)})
    assert __main__.main(["update-images", "--all"]) == 0
    assert cluster.asked == ["digits"], "what is said of an earlier spec holds nothing back"
