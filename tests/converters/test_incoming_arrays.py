"""Batches that user code wrote: what is not exactly an array of numbers or text is not read."""

import io
import json
import shutil
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy
import pytest

from triton_converters.claim_store.dump import Batch, write_batch
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.incoming import arrays
from triton_converters.incoming.documents import Dump, Names

NAMES = Names(("x",), ("y",))
X = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
GIVEN = {"ids": numpy.arange(2), "inputs/x": X, "outputs/y": X}


class Bomb:
    """Unpickling it leaves a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + data


def write(root: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    path = root / "batches" / "00000.npz"
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def valid(**changes: bytes) -> dict[str, bytes]:
    members = {}
    for name, array in GIVEN.items():
        buffer = io.BytesIO()
        numpy.save(buffer, array)
        members[f"{name}.npy"] = buffer.getvalue()
    return members | {name.replace("_", "/") + ".npy": content for name, content in changes.items()}


def read(root: Path) -> list[Batch]:
    return list(arrays.read_batches(root, ".", NAMES, root, 10))


def refusal(root: Path, reason: Reason = Reason.CRASHED) -> str:
    with pytest.raises(StageError) as caught:
        read(root)
    assert caught.value.reason is reason, caught.value.message
    return caught.value.message


def test_a_batch_is_read_as_it_was_written(tmp_path: Path) -> None:
    text = numpy.array([["größer", ""], ["b", "\U0001f600"]])
    for number, array in enumerate((X, X.T.copy(order="F"), text, numpy.zeros((2, 0), numpy.int64), X > 2)):
        given = Batch(numpy.array(["a", "b"]), {"x": array}, {"any": numpy.array(["2024-01-01"], "M8[D]")}, {"y": X})
        write_batch(tmp_path, number, given)
        batch = read(tmp_path)[number]
        assert batch.inputs["x"].dtype == array.dtype
        numpy.testing.assert_array_equal(batch.inputs["x"], array)
        numpy.testing.assert_array_equal(batch.labels["any"], given.labels["any"])
        assert batch.ids.tolist() == ["a", "b"]


def test_a_scalar_stays_one(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, Batch(numpy.arange(1), {"x": numpy.float32(3.0)[()]}, {}, {"y": X}))
    assert read(tmp_path)[0].inputs["x"].shape == ()


def test_no_batch_is_none(tmp_path: Path) -> None:
    assert read(tmp_path) == []


def test_a_pickle_is_not_loaded(tmp_path: Path) -> None:
    mark, buffer = tmp_path / "executed", io.BytesIO()
    numpy.save(buffer, numpy.array([Bomb(mark), Bomb(mark)], dtype=object), allow_pickle=True)
    write(tmp_path, valid(inputs_x=buffer.getvalue()))
    assert "not numbers or text" in refusal(tmp_path)
    assert not mark.exists()


FLOAT = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }"
HEADERS: dict[str, bytes] = {
    "longer than its data": npy(FLOAT % "(1000000000000,)", bytes(8)),
    "longer than any memory": npy(FLOAT % "(9223372036854775807, 9223372036854775807)", bytes(8)),
    "shorter than its data": npy(FLOAT % "(1,)", bytes(8)),
    "a negative size": npy(FLOAT % "(-1, -2)", bytes(8)),
    "elements of no size": npy("{'descr': '|V0', 'fortran_order': False, 'shape': (1000000000000,), }"),
    "text of no size": npy("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }"),
    "a structure": npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", bytes(8)),
    "an object inside": npy("{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,), }", bytes(8)),
    "no literal": npy("__import__('os').abort()"),
    "another version": npy(FLOAT % "(2,)", bytes(8), b"\x02\x00"),
    "a header that is cut": b"\x93NUMPY\x01\x00\xff\xff{",
    "no array": b"hello",
    "empty": b"",
    "text that is no Unicode": npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", b"\xff\xff\xff\xff"),
    "half a surrogate pair": npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", b"\x00\xd8\x00\x00"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_that_lies_is_refused(tmp_path: Path, case: str) -> None:
    write(tmp_path, valid(inputs_x=HEADERS[case]))
    assert "00000.npz" in refusal(tmp_path)


@pytest.mark.parametrize(
    "members",
    [
        {"inputs/other.npy": HEADERS["empty"]},
        {"../../escape.npy": valid()["ids.npy"]},
        {"secret.npy": valid()["ids.npy"]},
        {"inputs/x": b""},
        {"inputs/\x1b[2J.npy": valid()["ids.npy"]},
        {"inputs/another.npy": valid()["ids.npy"]},
        {"outputs/another.npy": valid()["ids.npy"]},
        {"ids.npy": valid()["inputs/x.npy"]},
        {f"labels/{'x' * 1000}.npy": valid()["ids.npy"]},
    ],
)
def test_a_wrong_name_is_refused(tmp_path: Path, members: dict[str, bytes]) -> None:
    write(tmp_path, valid() | members)
    refusal(tmp_path)


@pytest.mark.parametrize("missing", ["ids", "inputs/x", "outputs/y"])
def test_a_missing_array_is_refused(tmp_path: Path, missing: str) -> None:
    write(tmp_path, {name: content for name, content in valid().items() if name != f"{missing}.npy"})
    refusal(tmp_path)


def test_a_compressed_file_may_be_a_bomb(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    numpy.save(buffer, numpy.zeros(2**24, numpy.uint8))
    path = write(tmp_path, valid(inputs_x=buffer.getvalue()), zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 2**16
    refusal(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06", b"PK\x03\x04" + bytes(100), bytes(1000)])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "batches").mkdir()
    (tmp_path / "batches" / "00000.npz").write_bytes(content)
    refusal(tmp_path)


def test_a_sparse_batch_that_is_longer_than_the_claim_is_refused(tmp_path: Path) -> None:
    with write(tmp_path, valid()).open("r+b") as file:
        file.truncate(2 * shutil.disk_usage(tmp_path).free)
    refusal(tmp_path, Reason.STORAGE_FULL)


def test_a_long_list_of_arrays_is_refused_before_it_is_in_memory(tmp_path: Path) -> None:
    """zipfile would read all of it, and keep ten times as many bytes: here 100 MiB for 12, and more for more."""
    path = write(tmp_path, valid())
    content = path.read_bytes()
    (start,) = struct.unpack("<L", content[-6:-2])
    entry, count = content[start:-22], 50_000
    many = entry * count
    end = b"PK\x05\x06" + struct.pack("<HHHHLLH", 0, 0, 3 * count % 65536, 3 * count % 65536, len(many), start, 0)
    path.write_bytes(content[:start] + many + end)
    tracemalloc.start()
    message = refusal(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "its list of arrays is longer than" in message
    assert peak < 2**22


@pytest.mark.parametrize("leave", [lambda path: path.symlink_to("/etc/passwd"), lambda path: path.mkdir()])
def test_a_batch_that_is_no_file_is_refused(tmp_path: Path, leave: Callable[[Path], object]) -> None:
    (tmp_path / "batches").mkdir()
    leave(tmp_path / "batches" / "00000.npz")
    refusal(tmp_path)


def test_more_batches_than_samples_are_refused(tmp_path: Path) -> None:
    for number in range(11):
        write_batch(tmp_path, number, Batch(numpy.arange(2), {"x": X}, {}, {"y": X}))
    assert "more than 10 batches" in refusal(tmp_path)


@pytest.mark.parametrize(
    "names",
    [
        Names((), ("y",)),
        Names(("x",), ()),
        Names(("x", "x"), ("y",)),
        Names(("x",), ("x",)),
        Names(("",), ("y",)),
        Names(("x\x1b[2J",), ("y",)),
        Names(("x" * 1000,), ("y",)),
        Names(tuple(map(str, range(10_000))), ("y",)),
        *(
            Dump.from_json(json.dumps(asdict(Dump(Names(("x",), ("y",), {"x": axes}), (), 1.0)))).names
            for axes in (5, "1", None, {"1": 1}, [1.5], ["1"], [None], [True])
        ),
    ],
)
def test_names_that_no_configuration_may_hold_are_refused(tmp_path: Path, names: Names) -> None:
    with pytest.raises(StageError) as caught:
        arrays.check_names(names, tmp_path)
    assert caught.value.reason is Reason.CRASHED
    assert "\x1b" not in caught.value.message


def test_a_members_output_may_have_the_name_of_an_input_but_no_other_output(tmp_path: Path) -> None:
    arrays.check_names(Names(("x",), ("x", "y")), tmp_path, may_share=True)
    with pytest.raises(StageError):
        arrays.check_names(Names(("x",), ("y", "y")), tmp_path, may_share=True)
