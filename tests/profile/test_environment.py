"""What a measurement says about the machine."""

from pathlib import Path

import pytest

from triton_converters.measuring.environment import cpu_count, cpu_model, device, memory_bytes


@pytest.mark.parametrize(
    ("kinds", "found"), [(["KIND_CPU"], "cpu"), (["KIND_GPU"], "gpu"), (["KIND_CPU", "KIND_GPU"], "gpu"), ([], "cpu")]
)
def test_the_device_is_that_of_the_loaded_models_instances(kinds: list[str], found: str) -> None:
    assert device([{"instance_group": [{"kind": kind, "count": 1} for kind in kinds]}]) == found


def test_the_processor_is_named(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Some CPU @ 3.00GHz\nflags\t: a b\n")
    assert cpu_model(tmp_path) == "Some CPU @ 3.00GHz"


def test_where_the_kernel_names_no_processor_the_architecture_stands(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nCPU part\t: 0xd0c\n")
    assert cpu_model(tmp_path) != ""


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "50000 100000"}, 0.5),
        ({"cpu/cpu.cfs_quota_us": "25000", "cpu/cpu.cfs_period_us": "100000"}, 0.25),
    ],
    ids=["v2", "v1"],
)
def test_the_containers_limit_counts_where_it_is_lower(tmp_path: Path, files: dict[str, str], cores: float) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    assert cpu_count(tmp_path) == cores


@pytest.mark.parametrize("files", [{}, {"cpu.max": "max 100000"}, {"cpu.max": "10000000000 100000"}])
def test_without_a_limit_all_cores_count(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert cpu_count(tmp_path) == cpu_count(tmp_path / "nowhere") >= 1


@pytest.mark.parametrize("file", ["memory.max", "memory/memory.limit_in_bytes"])
def test_the_containers_memory_limit_counts(tmp_path: Path, file: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("67108864\n")
    assert memory_bytes(tmp_path) == 64 * 2**20


@pytest.mark.parametrize("files", [{}, {"memory.max": "max"}, {"memory/memory.limit_in_bytes": "9223372036854771712"}])
def test_without_a_memory_limit_all_of_the_machine_counts(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory_bytes(tmp_path) == memory_bytes(tmp_path / "nowhere") > 2**28
