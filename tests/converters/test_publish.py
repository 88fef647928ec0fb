"""Directories appear on the claim whole, once, or not at all."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from triton_converters.claim_store import publish


def publish_text(target: Path, text: str) -> bool:
    with publish.temporary_directory(target) as directory:
        (directory / "sub").mkdir()
        (directory / "sub" / "file").write_text(text)
        return publish.publish_directory(directory, target)


def test_a_published_directory_is_whole_and_nothing_temporary_stays(tmp_path: Path) -> None:
    assert publish_text(tmp_path / "sources" / "abc", "one")
    assert [path.name for path in (tmp_path / "sources").iterdir()] == ["abc"]
    assert (tmp_path / "sources" / "abc" / "sub" / "file").read_text() == "one"


def test_a_published_directory_can_be_read_by_others(tmp_path: Path) -> None:
    publish_text(tmp_path / "abc", "one")
    assert (tmp_path / "abc").stat().st_mode & 0o777 == 0o755


def test_the_second_publisher_loses_silently(tmp_path: Path) -> None:
    assert publish_text(tmp_path / "abc", "one")
    assert not publish_text(tmp_path / "abc", "two")
    assert (tmp_path / "abc" / "sub" / "file").read_text() == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["abc"]


def test_of_many_concurrent_publishers_exactly_one_wins(tmp_path: Path) -> None:
    won: list[str] = []
    barrier = threading.Barrier(8)

    def work(text: str) -> None:
        barrier.wait()
        if publish_text(tmp_path / "abc", text):
            won.append(text)

    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert (tmp_path / "abc" / "sub" / "file").read_text() == won[0]


def test_a_damaged_directory_gives_way(tmp_path: Path) -> None:
    (tmp_path / "abc").mkdir()
    (tmp_path / "abc" / "half").write_text("")
    with publish.temporary_directory(tmp_path / "abc") as directory:
        (directory / "result").write_text("whole")
        assert publish.publish_directory(directory, tmp_path / "abc", lambda path: (path / "result").exists())
    assert [path.name for path in (tmp_path / "abc").iterdir()] == ["result"]
    assert [path.name for path in tmp_path.iterdir()] == ["abc"]


def test_leftovers_of_a_killed_publisher_do_not_matter(tmp_path: Path) -> None:
    leftover = tmp_path / f"{publish.TEMPORARY_PREFIX}abc-killed"
    leftover.mkdir()
    (leftover / "half").write_text("")
    assert publish_text(tmp_path / "abc", "one")


KILLED = """
import os, signal, sys
from pathlib import Path
from triton_converters.claim_store.publish import temporary_directory
with temporary_directory(Path(sys.argv[1])) as directory:
    (directory / "model.onnx").write_bytes(b"x" * 1000)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_a_publisher(target: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    assert done.returncode == -signal.SIGKILL


def test_what_killed_jobs_of_a_key_left_does_not_add_up_and_goes_with_the_next_try(tmp_path: Path) -> None:
    for _ in range(3):
        kill_a_publisher(tmp_path / "abc")
        assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) == 1000
    assert publish_text(tmp_path / "abc", "one")
    assert [path.name for path in tmp_path.iterdir()] == ["abc"]


def test_what_a_killed_job_of_another_key_left_stays(tmp_path: Path) -> None:
    kill_a_publisher(tmp_path / "def")
    assert publish_text(tmp_path / "abc", "one")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_second_job_of_the_key_leaves_the_first_alone(tmp_path: Path) -> None:
    with publish.temporary_directory(tmp_path / "abc") as first:
        (first / "file").write_text("one")
        assert publish_text(tmp_path / "abc", "two")
        assert (first / "file").read_text() == "one"
        assert not publish.publish_directory(first, tmp_path / "abc")
    assert [path.name for path in tmp_path.iterdir()] == ["abc"]


def test_without_locks_nothing_is_swept_and_everything_else_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with publish.temporary_directory(tmp_path / "abc") as first:
        assert publish_text(tmp_path / "abc", "two")
        assert first.is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["abc"]


def test_nothing_but_what_was_written_is_published(tmp_path: Path) -> None:
    publish_text(tmp_path / "abc", "one")
    assert [path.name for path in (tmp_path / "abc").iterdir()] == ["sub"]


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        publish_text(tmp_path / "abc", "one")
    with pytest.raises(OSError, match="No space left"):
        publish.write_file(tmp_path / "result.json", b"{}")
    assert list(tmp_path.iterdir()) == []


def test_everything_is_on_the_disk_before_it_is_visible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    sync, rename = publish.sync, os.rename

    def record_sync(path: Path) -> None:
        events.append(path.name)
        sync(path)

    def record_rename(source: Path, target: Path) -> None:
        events.append("rename")
        rename(source, target)

    monkeypatch.setattr(publish, "sync", record_sync)
    monkeypatch.setattr(os, "rename", record_rename)
    publish_text(tmp_path / "abc", "one")
    assert {"file", "sub"} <= set(events[: events.index("rename")])
    assert events[-1] == tmp_path.name


def test_write_file_replaces_an_older_one_whole(tmp_path: Path) -> None:
    publish.write_file(tmp_path / "a" / "result.json", b"old and longer")
    publish.write_file(tmp_path / "a" / "result.json", b"new")
    assert (tmp_path / "a" / "result.json").read_bytes() == b"new"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["result.json"]
