"""A picture's file goes in, its label comes out: Python steps inside the server, as one object."""

from tests.e2e.pictures import Pictures


def test_the_labels_are_as_right_as_the_frameworks(pictures: Pictures) -> None:
    (row,) = pictures.state.status["accuracy"]
    assert (row["metric"], row["samples"], row["served"]) == ("accuracy", 360, row["framework"])
    assert float(row["served"]) > 0.95
    (candidate,) = pictures.state.candidates.values()
    assert candidate["members"] == ["triton-python-fp32-none", "onnx-fp32-none", "triton-python-fp32-none"]


def test_a_client_sends_files(pictures: Pictures) -> None:
    right = [name == wanted for name, wanted in zip(pictures.first["labels"], pictures.first["wanted"], strict=True)]
    assert sum(right) >= len(right) - 1
    assert all(0.1 <= each <= 1 for each in pictures.first["probabilities"])


def test_a_broken_file_is_told_to_its_own_client(pictures: Pictures) -> None:
    assert "no JPEG or PNG" in pictures.first["refused"]


def test_a_change_of_a_steps_code_fails_no_request(pictures: Pictures) -> None:
    assert pictures.rounded.revision != pictures.state.revision
    assert abs(pictures.during["last"] - round(pictures.during["before"], 2)) < 1e-6
    assert pictures.during["sent"] >= 10
    assert pictures.during["failed"] == []
