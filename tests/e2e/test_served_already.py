"""What somebody serves with Triton already needs no other file, and is served with the same settings."""

from tests.e2e.served_already import ServedAlready


def test_the_server_has_the_settings_of_the_file(served_already: ServedAlready) -> None:
    config = served_already.config
    assert (config["max_batch_size"], config["instance_group"][0]["count"]) == (8, 2)
    batching = config["dynamic_batching"]
    assert batching["preferred_batch_size"] == [4, 8]
    assert int(batching["max_queue_delay_microseconds"]) == 250
    assert batching["default_queue_policy"]["max_queue_size"] == 64


def test_the_status_says_what_was_taken(served_already: ServedAlready) -> None:
    (model,) = served_already.ready.status["resolved"]["models"]
    assert (model["format"], model["repository"]["file"]) == ("onnx", "ocr/1/model.onnx")
    assert served_already.ready.condition("Verified")["reason"] == "GeneratedInputs"


def test_a_planted_library_is_not_served(served_already: ServedAlready) -> None:
    files = [each for each in served_already.files if "/warmup/" not in each]
    assert sorted(files) == ["reader/1/model.onnx", "reader/config.pbtxt"]


def test_a_python_backend_is_refused_with_the_reason(served_already: ServedAlready) -> None:
    message = served_already.refused.condition("SourceResolved")["message"]
    assert "code/config.pbtxt: backend 'python' is not supported: a Python backend is code" in message
