"""What the names of a tensor's axes tell about the first one."""

import pytest

from triton_converters.found.axes import is_length

LENGTHS = [
    "seq", "seq_len", "seqLen", "seqlen", "SequenceLength", "sequence", "sequence_length", "length", "len", "max_len",
    "past_sequence_length + 1", "num_tokens", "tokens", "n_frames", "frame", "time", "timesteps", "time_steps", "steps",
    "nodes", "num_nodes", "points", "word", "words", "T", "L", "s0 time", "tokens0", "num_points_2",
]  # fmt: skip
SAMPLES = [
    "N", "n", "B", "batch", "batch_size", "samples", "endpoint_count", "endpoints", "sequences", "num_sequences",
    "keypoint_sets", "footsteps_id", "passwords", "sometimes", "valence", "talent", "lens", "secondary", "consequence",
    "", "?", "None", "-1", "dynamic", "unk__610", "dim_0", "frame_dim_0", "DynamicDimension.3", "s0", "time_batch",
]  # fmt: skip
UNNAMED = [
    "", "?", "-1", "None", "none", "dynamic", "Dynamic", "unk__6", "dim_0", "dim_12", "dynamic_axes_1", "unknown",
    "p2o.DynamicDimension.4", "DynamicDimension.4",
]  # fmt: skip


@pytest.mark.parametrize("name", LENGTHS)
def test_the_name_of_a_length(name: str) -> None:
    assert is_length([name, "", ""])


@pytest.mark.parametrize("name", SAMPLES)
def test_the_name_of_samples_or_of_nothing(name: str) -> None:
    assert not is_length([name, "", ""])


@pytest.mark.parametrize("name", UNNAMED)
def test_a_name_that_an_exporter_repeats_says_nothing_of_sizes(name: str) -> None:
    assert not is_length([name, name, ""])
    assert is_length([name, "batch", ""])


@pytest.mark.parametrize("name", ["N", "pairs", "s1"])
def test_two_axes_of_one_name_are_no_samples(name: str) -> None:
    assert is_length([name, name])
