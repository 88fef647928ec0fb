"""One command from a file to an answer."""

import json

import yaml

from tests.e2e.running import Ran


def test_the_command_ends_with_a_request_that_the_server_answers(ran: Ran) -> None:
    assert "is ready" in ran.command.stdout
    (output,) = json.loads(ran.answer)["outputs"]
    assert (output["name"], output["shape"], output["data"]) == ("scores", [1, 2], [0.0, 0.0])


def test_the_file_that_it_wrote_is_the_object(ran: Ran) -> None:
    source = yaml.safe_load(ran.yaml)["spec"]["source"]
    assert ran.object["spec"]["source"] == source
    assert ran.object["status"]["source"]["digest"] == f"sha256:{source['sha256']}"


def test_it_does_not_overwrite_its_file(ran: Ran) -> None:
    assert ran.again.returncode == 1
    assert "exists; pass --update" in ran.again.stderr


def test_the_ejected_server_answers_the_same_without_the_object(ran: Ran) -> None:
    before, after = (json.loads(each)["outputs"] for each in (ran.answer, ran.answer_without))
    assert after == before
