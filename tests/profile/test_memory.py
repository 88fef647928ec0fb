"""Memory in use, from Triton's metrics; texts are those of 2.51.0."""

import time

import pytest

from triton_converters.measuring.memory import MemoryWatch, used_bytes

CPU = """# HELP nv_cpu_memory_used_bytes CPU used memory (RAM), in bytes
# TYPE nv_cpu_memory_used_bytes gauge
nv_cpu_memory_total_bytes 25225543680.000000
nv_cpu_memory_used_bytes 3221225472.000000
"""
GPU = """# TYPE nv_gpu_memory_used_bytes gauge
nv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 1073741824.000000
nv_gpu_memory_used_bytes{gpu_uuid="GPU-2"} 2147483648.000000
"""


def test_of_gpus_all_are_counted_and_the_nodes_memory_is_not() -> None:
    assert used_bytes(GPU + CPU, "gpu") == 3 * 2**30


def test_without_a_gpu_it_is_the_nodes() -> None:
    assert used_bytes(CPU, "cpu") == 3 * 2**30


@pytest.mark.parametrize("told", ["", 'nv_gpu_memory_used_bytes{gpu_uuid="MIG-1"} 0.000000\n'], ids=["nothing", "0"])
def test_what_triton_cannot_read_of_a_gpu_is_unknown_and_not_the_nodes(told: str) -> None:
    """core/src/metrics.cc: without DCGM it has no sample, and where DCGM has no figure it writes 0."""
    assert used_bytes(told + CPU, "gpu") == 0


def test_of_two_gpus_one_that_is_unknown_leaves_the_sum_unknown() -> None:
    assert used_bytes(GPU + 'nv_gpu_memory_used_bytes{gpu_uuid="GPU-3"} 0.000000\n', "gpu") == 0


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_metrics_without_memory_say_nothing(device: str) -> None:
    assert used_bytes('nv_inference_count{model="m"} 3', device) == 0


def test_the_peak_is_the_most_that_was_seen_in_whole_mebibytes() -> None:
    figures = iter([5 * 2**20 + 1, 9 * 2**20 + 7])
    asked: list[int] = []

    def used() -> int:
        asked.append(next(figures, 2**20))
        return asked[-1]

    with MemoryWatch(used) as watch:
        while len(asked) < 3:
            time.sleep(0.1)
    assert watch.peak == 9 * 2**20


def test_where_nobody_can_be_asked_the_peak_is_unknown() -> None:
    with MemoryWatch(None) as watch:
        pass
    assert watch.peak == 0
