"""ONNX Runtime in a Job has as many threads as the container has CPUs."""

import pytest

from triton_converters.load.onnx_session import ONLY_FATAL, session_options


@pytest.mark.parametrize(("variable", "threads"), [("3", 3), ("", 0), ("many", 0)])
def test_the_threads_follow_the_variable_that_the_operator_sets(
    variable: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 stands for all cores of the node."""
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    options = session_options(ONLY_FATAL)
    assert (options.intra_op_num_threads, options.log_severity_level) == (threads, ONLY_FATAL)
