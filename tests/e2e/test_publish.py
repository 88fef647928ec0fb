"""A registry has what passed, signed by the key of a Secret, and nothing serves it."""

from tests.e2e.publishing import REPOSITORY, Published


def test_it_is_ready_without_a_server(published: Published) -> None:
    state = published.state
    assert state.holds("Ready"), state.summary()
    assert state.says("Published", "Published"), state.summary()
    assert published.servers == 0
    assert "endpoint" not in state.status


def test_the_registry_has_the_image_and_the_key_attests_why_it_passed(published: Published) -> None:
    told = published.state.status["published"]
    assert f"/{REPOSITORY}@sha256:" in told["image"]
    assert told["signer"]
    (report,) = published.attested
    assert report["revision"]["key"] == told["revision"] == published.state.revision
    assert report["identity"]["name"] == published.state.name
    assert report["gates"]["samples"] > 0
    assert not report.get("local")


def test_another_key_attests_nothing(published: Published) -> None:
    assert published.strangers == []
