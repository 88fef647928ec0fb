"""The source stage: digest, safety of the copy, idempotence."""

import errno
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import Attack
from triton_converters.claim_store import sources
from triton_converters.claim_store.digest import SourceFile, is_listing, is_published
from triton_converters.claim_store.root import own_directory
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SourceResult
from triton_converters.fetch import mounted as mounted_files
from triton_converters.fetch.folder import LEFT_OUT
from triton_converters.stages import source

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "source.md"


def request(path: str = "", sha256: str = "") -> SourceRequest:
    return SourceRequest("0123456789abcdef", f"pvc://models/{path}", path, sha256)


def documented_command() -> str:
    """The shell lines of docs/source.md, as the user would paste them."""
    text = DOCUMENTATION.read_text().split("## The digest\n")[1]
    return text.split("```sh\n")[1].split("```")[0]


def digest_by_shell(directory: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", documented_command()], cwd=directory, capture_output=True, text=True, check=True
    )
    return done.stdout.split()[0]


@pytest.fixture
def mounted(mount: Path) -> Path:
    """The source's mount, with a small tree."""
    root = layout.SOURCE_MOUNT
    (root / "nested" / "deep").mkdir(parents=True)
    (root / "model.py").write_text("print('ä')\n")
    (root / "weights.safetensors").write_bytes(bytes(range(256)) * 40)
    (root / "nested" / "Zebra.txt").write_text("z")
    (root / "nested" / "apple.txt").write_text("a")
    (root / "nested" / "deep" / "with space.txt").write_text("")
    return root


def test_a_directory_is_published_under_the_digest_that_the_documented_command_prints(mounted: Path) -> None:
    result = source.run(request())
    assert result.digest == digest_by_shell(mounted)
    assert (result.files, result.total_bytes) == (5, 256 * 40 + 12 + 2)
    published = layout.source_directory(result.digest)
    assert sorted(str(path.relative_to(published)) for path in published.rglob("*") if path.is_file()) == [
        "model.py",
        "nested/Zebra.txt",
        "nested/apple.txt",
        "nested/deep/with space.txt",
        "weights.safetensors",
    ]
    assert (published / "weights.safetensors").read_bytes() == (mounted / "weights.safetensors").read_bytes()


def test_the_digest_of_the_requirements_file_is_told(mounted: Path) -> None:
    (mounted / "nested" / "requirements.txt").write_text("timm==1.0.9\n")
    result = source.run(replace(request(), requirements="nested/requirements.txt"))
    assert result.requirements == hashlib.sha256(b"timm==1.0.9\n").hexdigest()
    assert source.run(request()).requirements == ""
    (mounted / "steps.txt").write_text("pillow\n")
    result = source.run(replace(request(), step_requirements=("steps.txt", "nested/requirements.txt")))
    assert result.step_requirements == (
        hashlib.sha256(b"pillow\n").hexdigest(),
        hashlib.sha256(b"timm==1.0.9\n").hexdigest(),
    )


def test_a_requirements_file_that_is_not_there_is_named_with_those_that_are(mounted: Path) -> None:
    with pytest.raises(StageError, match=r"no file requirements\.txt.*nested/Zebra\.txt") as caught:
        source.run(replace(request(), requirements="requirements.txt"))
    assert caught.value.reason is Reason.REQUIREMENTS_INVALID
    with pytest.raises(StageError, match=r"no file steps\.txt, which requirements of a model names"):
        source.run(replace(request(), step_requirements=("steps.txt",)))


@pytest.mark.parametrize("uri", ["pvc://models/", "hf://acme/ocr"])
def test_what_an_earlier_job_published_is_asked_something_else(mounted: Path, uri: str) -> None:
    published = source.run(request())
    shutil.rmtree(mounted)
    again = replace(request(), uri=uri, published=published.digest, resolved="v1", requirements="nested/apple.txt")
    result = source.run(again)
    assert (result.digest, result.files, result.resolved) == (published.digest, 5, "v1")
    assert result.requirements == hashlib.sha256(b"a").hexdigest()
    shutil.rmtree(layout.source_directory(published.digest))
    with pytest.raises(StageError, match="is no longer on the repository claim; the source is read again") as caught:
        source.run(again)
    assert (caught.value.reason, caught.value.final) == (Reason.INPUT_MISSING, False)


def test_nothing_is_told_of_files_that_the_object_has_not_read(mounted: Path, attack: Attack) -> None:
    digest = source.run(request()).digest
    shutil.rmtree(own_directory() / ".received")
    with pytest.raises(StageError, match="no source Job of this object has read") as caught:
        source.run(replace(request(), published=digest))
    attack("editor of a record", "the files of another object, by their digest", caught.value.message)


names = st.text(st.characters(blacklist_characters="/\\", blacklist_categories=("Cc", "Cs")), min_size=1, max_size=12)
trees = st.dictionaries(
    names.filter(lambda name: not name.startswith("..") and name not in (".", *LEFT_OUT) and len(name.encode()) < 200),
    st.binary(max_size=40),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees.filter(lambda tree: "-" not in tree), nested=trees)
def test_any_tree_has_the_documented_digest(
    tree: dict[str, bytes], nested: dict[str, bytes], mount: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("tree")
    layout.SOURCE_MOUNT = root
    # sha256sum takes `-` for its standard input, as the page says.
    for name, content in tree.items():
        (root / name).write_bytes(content)
    (root / "folder of its own").mkdir()
    for name, content in nested.items():
        (root / "folder of its own" / name).write_bytes(content)
    assert source.run(request()).digest == digest_by_shell(root)


def test_a_single_file_is_digested_like_sha256sum(mounted: Path) -> None:
    expected = subprocess.run(
        ["sha256sum", mounted / "weights.safetensors"], capture_output=True, text=True, check=True
    ).stdout.split()[0]
    result = source.run(request("weights.safetensors", expected))
    assert result.digest == expected
    assert (layout.source_directory(expected) / "weights.safetensors").stat().st_size == result.total_bytes


def test_the_same_content_is_published_once(mounted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: SourceFile, target: Path) -> None:
        raise AssertionError(f"{file.name} was copied again")

    first = source.run(request())
    (mounted / "model.py").touch()
    monkeypatch.setattr(mounted_files, "copy", refuse)
    assert source.run(request()) == first
    assert len(list((layout.ROOT / "sources").iterdir())) == 1


def plant_other_code(published: Path) -> None:
    (published / "model.py").write_text("import os")


def plant_a_module(published: Path) -> None:
    (published / "numpy.py").write_text("import os")


def plant_a_link(published: Path) -> None:
    (published / "model.py").unlink()
    (published / "model.py").symlink_to("/etc/passwd")


def plant_a_file(published: Path) -> None:
    shutil.rmtree(published)
    published.write_text("")


@pytest.mark.parametrize("plant", [plant_other_code, plant_a_module, plant_a_link, plant_a_file])
def test_what_was_planted_under_the_digest_is_replaced(mounted: Path, plant: Callable[[Path], None]) -> None:
    digest = digest_by_shell(mounted)
    published = layout.source_directory(digest)
    shutil.copytree(mounted, published)
    plant(published)
    assert source.run(request(sha256=digest)).digest == digest
    assert digest_by_shell(published) == digest
    assert not list(published.rglob("numpy.py"))
    assert [each.name for each in published.parent.iterdir()] == [digest]


def test_what_the_operator_keeps_on_a_claim_is_never_a_source(mounted: Path, attack: Attack) -> None:
    digest = source.run(request()).digest
    # The claim that the source is mounted from is the repository's.
    shutil.copytree(layout.ROOT, mounted / layout.ROOT.name)
    shutil.copytree(layout.ROOT, mounted / "nested" / layout.ROOT.name)
    again = source.run(request())
    assert again.digest == digest == digest_by_shell(mounted)
    attack("author of an object", "the files of others, by the repository claim as a source", "they are left out")


@pytest.mark.parametrize(
    ("link", "path"), [("copy", ""), ("nested/copy", ""), ("copy", "copy"), ("copy", "copy/sources")]
)
def test_no_link_leads_to_what_the_operator_keeps_on_a_claim(
    mounted: Path, link: str, path: str, attack: Attack
) -> None:
    shutil.copytree(layout.ROOT, mounted / layout.ROOT.name)
    (mounted / layout.ROOT.name / "sources").mkdir()
    (mounted / link).symlink_to(mounted / layout.ROOT.name)
    with pytest.raises(StageError, match=r"\.triton-operator") as caught:
        source.run(request(path))
    assert caught.value.reason is Reason.SOURCE_INVALID
    assert not list((layout.ROOT / "sources").glob("*"))
    attack(
        "author of an object",
        f"the files of others, by the link {link} and the path {path or None}",
        caught.value.message,
    )


def test_other_content_or_another_name_is_another_digest(mounted: Path) -> None:
    first = source.run(request()).digest
    (mounted / "model.py").rename(mounted / "net.py")
    second = source.run(request()).digest
    (mounted / "net.py").write_text("pass\n")
    assert len({first, second, source.run(request()).digest}) == 3


def publish_single(name: str, content: bytes = b"import colorsys\n") -> SourceResult:
    """Publish one file, as an object does that names it alone."""
    shutil.rmtree(layout.SOURCE_MOUNT, ignore_errors=True)
    layout.SOURCE_MOUNT.mkdir()
    (layout.SOURCE_MOUNT / name).write_bytes(content)
    return source.run(request(name, hashlib.sha256(content).hexdigest()))


def published_names(result: SourceResult) -> list[str]:
    return sorted(each.name for each in layout.source_directory(result.digest).iterdir())


def test_a_single_file_that_is_published_under_another_name_lies_elsewhere(mount: Path) -> None:
    """Its digest does not cover its name, and code imports what lies next to it."""
    first, second = publish_single("model.py"), publish_single("colorsys.py")
    assert (published_names(first), published_names(second)) == (["model.py"], ["colorsys.py"])
    assert first.digest == hashlib.sha256(b"import colorsys\n").hexdigest()
    assert second.digest == digest_by_shell(layout.source_directory(second.digest))
    assert is_published(layout.source_directory(second.digest))
    assert (publish_single("model.py"), publish_single("colorsys.py")) == (first, second)


def test_a_single_file_stays_where_it_is_when_the_other_name_is_gone(mount: Path) -> None:
    first, second = publish_single("model.py"), publish_single("colorsys.py")
    shutil.rmtree(layout.source_directory(first.digest))
    assert publish_single("colorsys.py") == second


def test_a_file_with_the_digest_of_a_folder_is_not_taken_for_it(mounted: Path) -> None:
    """Its content is the list of the folder's files."""
    digest = digest_by_shell(mounted)
    # As somebody who may write to the claim may put it there.
    forged = layout.source_directory(digest)
    forged.mkdir(parents=True)
    (forged / "models").write_text(listing(mounted))
    assert not is_published(forged)
    sources.receive(digest)
    # It has the name that a single file of a bucket would have: without a download, this pin would be answered with it.
    for pinned in ("s3://bucket/models", "https://example.test/other"):
        assert source._known(request(sha256=digest), pinned.rpartition("/")[2]) is None
    assert source.run(request(sha256=digest)).digest == digest
    assert is_published(forged)
    assert not (forged / "models").exists()


def test_a_file_with_the_digest_of_a_folder_is_refused(mounted: Path) -> None:
    """Whoever shares the claim pins the folder, and would get the file."""
    (layout.SOURCE_MOUNT.parent / "listing").write_text(listing(mounted))
    text = (layout.SOURCE_MOUNT.parent / "listing").rename(mounted / "x.bin")
    with pytest.raises(StageError, match=r"'x.bin' is a list of SHA-256 digests.*into a folder") as caught:
        source.run(request("x.bin"))
    assert (caught.value.reason, caught.value.final) == (Reason.SOURCE_INVALID, True)
    assert not layout.source_directory(hashlib.sha256(text.read_bytes()).hexdigest()).exists()
    folder = mounted / "folder"
    folder.mkdir()
    text.rename(folder / "x.bin")
    assert source.run(request("folder")).files == 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a" * 64 + "  model.py\n", True),
        ("a" * 64 + "  a b\n" + "0" * 64 + "  ä/ö\n", True),
        ("", False),
        ("a" * 64 + "  model.py", False),
        ("a" * 64 + " *model.py\n", False),
        ("a" * 63 + "  model.py\n", False),
        ("a" * 64 + "  model.py\n\n", False),
        ("a" * 64 + "  " + "b" * 10_000 + "\n", False),
    ],
)
def test_only_what_a_folder_lists_is_a_listing(tmp_path: Path, content: str, expected: bool) -> None:
    path = tmp_path / "file"
    path.write_text(content)
    assert is_listing(path) is expected


def listing(root: Path) -> str:
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in tree(root))
    return "".join(lines)


def tree(root: Path) -> list[Path]:
    return sorted(
        (path for path in root.rglob("*") if path.is_file()), key=lambda path: os.fsencode(path.relative_to(root))
    )


def test_published_files_cannot_be_written_by_accident(mounted: Path) -> None:
    published = layout.source_directory(source.run(request()).digest)
    assert (published / "model.py").stat().st_mode & 0o222 == 0


def test_a_mounted_configmap_is_read_through_the_kubelet_s_links(mount: Path) -> None:
    root = layout.SOURCE_MOUNT
    version = root / "..2026_11_21_07_00_00.123456789"
    version.mkdir(parents=True)
    (version / "model.py").write_text("x = 1\n")
    (root / "..data").symlink_to(version.name)
    (root / "model.py").symlink_to("..data/model.py")
    result = source.run(request())
    assert (result.files, result.digest) == (1, digest_by_shell(root))
    published = layout.source_directory(result.digest)
    assert [path.name for path in published.iterdir()] == ["model.py"]
    assert not (published / "model.py").is_symlink()


def test_links_inside_the_source_are_followed(mounted: Path) -> None:
    (mounted / "linked").symlink_to("nested")
    (mounted / "current.safetensors").symlink_to("weights.safetensors")
    result = source.run(request())
    assert (result.files, result.digest) == (9, digest_by_shell(mounted))
    assert (layout.source_directory(result.digest) / "linked" / "apple.txt").read_text() == "a"


def break_with_absolute_link(root: Path) -> None:
    (root / "nested" / "passwd").symlink_to("/etc/passwd")


def break_with_relative_link(root: Path) -> None:
    (root.parent / "secret").write_text("secret")
    (root / "secret").symlink_to("../secret")


def break_with_directory_link(root: Path) -> None:
    (root / "everything").symlink_to("/")


def break_with_loop(root: Path) -> None:
    (root / "nested" / "again").symlink_to("../nested")


def break_with_a_link_to_itself(root: Path) -> None:
    (root / "round.py").symlink_to("round.py")


def break_with_dangling_link(root: Path) -> None:
    (root / "gone.py").symlink_to("never-there.py")


def break_with_pipe(root: Path) -> None:
    os.mkfifo(root / "pipe")


def break_with_links_that_multiply(root: Path) -> None:
    """Each folder has two links to the next one: 28 links, and 32,767 names of one file's folder."""
    for number in range(15):
        (root / f"d{number}").mkdir()
    for number in range(14):
        for name in "ab":
            (root / f"d{number}" / name).symlink_to(f"../d{number + 1}")
    (root / "d14" / "weights").write_bytes(b"x")


def break_with_links_to_nothing(root: Path) -> None:
    """As before, with no file at the end: the names alone are too many to look at."""
    break_with_links_that_multiply(root)
    (root / "d14" / "weights").unlink()


def break_with_a_long_path(root: Path) -> None:
    """No folder lies deep, but the links lead through all of them."""
    (root / "8").mkdir()
    for number in range(8):
        (root / f"{number}").mkdir()
        (root / f"{number}" / ("n" * 200)).symlink_to(f"../{number + 1}")


def break_with_name(root: Path) -> None:
    (root / "two\nlines.py").write_text("")


@pytest.mark.parametrize(
    ("break_source", "words"),
    [
        (break_with_absolute_link, ["nested/passwd", "/etc/passwd", "outside the source"]),
        (break_with_relative_link, ["secret", "../secret", "outside the source"]),
        (break_with_directory_link, ["everything", "outside the source"]),
        (break_with_loop, ["nested/again", "a directory that contains it"]),
        (break_with_dangling_link, ["gone.py", "a broken link"]),
        (break_with_a_link_to_itself, ["round.py", "a broken link"]),
        (break_with_pipe, ["pipe", "not a regular file"]),
        (break_with_links_that_multiply, ["links lead to more than 20000 files and folders", "copy the files"]),
        (break_with_links_to_nothing, ["links lead to more than 20000 files and folders"]),
        (break_with_a_long_path, ["a path of more than 1024 bytes"]),
        (break_with_name, ["two\\nlines.py", "control character"]),
    ],
)
def test_what_cannot_be_published_is_refused_by_name(
    mounted: Path, break_source: Callable[[Path], None], words: list[str]
) -> None:
    break_source(mounted)
    with pytest.raises(StageError) as caught:
        source.run(request())
    assert caught.value.reason is Reason.SOURCE_INVALID
    assert all(word in caught.value.message for word in words), caught.value.message
    assert not (layout.ROOT / "sources").exists()


def test_a_wrong_digest_names_both(mounted: Path) -> None:
    with pytest.raises(StageError) as caught:
        source.run(request(sha256="0" * 64))
    assert caught.value.reason is Reason.DIGEST_MISMATCH
    assert digest_by_shell(mounted) in caught.value.message
    assert "0" * 64 in caught.value.message
    assert not (layout.ROOT / "sources").exists()


@pytest.mark.parametrize("path", ["absent", "nested/absent/deeper", "model.py/absent", "a" * 256])
def test_a_missing_path_says_what_is_there(mounted: Path, path: str) -> None:
    with pytest.raises(StageError) as caught:
        source.run(request(path))
    assert caught.value.reason is Reason.SOURCE_NOT_FOUND
    assert "the folder has" in caught.value.message


def test_a_path_cannot_leave_the_mount(mounted: Path) -> None:
    (mounted.parent / "other").mkdir()
    with pytest.raises(StageError) as caught:
        source.run(request("../other"))
    assert caught.value.reason is Reason.SOURCE_INVALID


def test_a_path_that_is_a_link_to_itself_is_refused(mounted: Path) -> None:
    break_with_a_link_to_itself(mounted)
    with pytest.raises(StageError, match=r"round\.py is a link that leads back to itself") as caught:
        source.run(request("round.py"))
    assert caught.value.reason is Reason.SOURCE_INVALID


@pytest.mark.parametrize(("method", "path"), [("is_symlink", ""), ("is_dir", ""), ("stat", "nested/apple.txt")])
def test_a_folder_that_may_be_listed_but_not_entered_is_refused(
    mounted: Path, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    known, closed = getattr(Path, method), mounted / "nested" / "apple.txt"

    def look(self: Path, **arguments: bool) -> object:
        if self == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))
        return known(self, **arguments)

    monkeypatch.setattr(Path, method, look)
    with pytest.raises(StageError, match=r"cannot read the source: .*apple\.txt.*; let it list and enter") as caught:
        source.run(request(path))
    assert caught.value.reason is Reason.SOURCE_INVALID


def test_an_empty_directory_is_no_source(mounted: Path) -> None:
    (mounted / "empty").mkdir()
    with pytest.raises(StageError) as caught:
        source.run(request("empty"))
    assert caught.value.reason is Reason.SOURCE_NOT_FOUND


@pytest.mark.parametrize("added", [True, False], ids=["a file more", "a file less"])
def test_a_folder_that_a_push_replaces_is_not_published_with_the_files_of_another(
    mount: Path, added: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was listed with is all there, so only another look shows that it became another folder."""
    root, names = layout.SOURCE_MOUNT, ["graph.onnx", "z.bin"]
    for folder, extra in (("m", not added), ("new", added)):
        (root / folder).mkdir(parents=True)
        for each in [*names, *(["extra.bin"] if extra else [])]:
            (root / folder / each).write_text(folder)
    listed = mounted_files.files

    def then_pushed(*arguments: Any) -> Iterator[SourceFile]:
        yield from listed(*arguments)
        if (root / "new").exists():
            (root / "m").rename(root / "old")
            (root / "new").rename(root / "m")

    monkeypatch.setattr(mounted_files, "files", then_pushed)
    with pytest.raises(StageError) as caught:
        source.run(request("m"))
    assert (caught.value.reason, caught.value.final) == (Reason.SOURCE_CHANGED, False)
    assert source.run(request("m")).files == 2 + added


@pytest.mark.parametrize("gone", ["nested", "nested/apple.txt", "nested/deep"])
def test_what_goes_while_it_is_listed_is_no_broken_link(
    mounted: Path, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved = mounted_files._resolved

    def then_gone(path: Path) -> Path:
        found = resolved(path)
        if path == mounted / gone:
            (mounted / gone).rename(mounted.parent / "gone")
        return found

    monkeypatch.setattr(mounted_files, "_resolved", then_gone)
    with pytest.raises(StageError) as caught:
        source.run(request())
    assert (caught.value.reason, caught.value.final) == (Reason.SOURCE_CHANGED, False)


@pytest.mark.parametrize("becomes", [Path.rmdir, lambda folder: (folder.rmdir(), folder.touch())])
def test_a_folder_that_goes_before_it_is_listed_is_no_crash(
    mounted: Path, becomes: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    (mounted / "zz").mkdir()
    listed = Path.iterdir

    def gone(self: Path) -> Iterator[Path]:
        if self == mounted / "zz":
            becomes(self)
        return listed(self)

    monkeypatch.setattr(Path, "iterdir", gone)
    with pytest.raises(StageError) as caught:
        source.run(request())
    assert (caught.value.reason, caught.value.final) == (Reason.SOURCE_CHANGED, False)


def put_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("../secret")


def put_a_linked_folder(path: Path) -> None:
    shutil.move(path.parent, path.parents[1] / "before")
    path.parent.symlink_to(layout.SOURCE_MOUNT.parent / "elsewhere")


def put_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("name", "swap"),
    [
        ("model.py", put_a_link),
        ("model.py", put_a_pipe),
        ("nested/apple.txt", put_a_linked_folder),
        ("nested/deep/with space.txt", put_a_linked_folder),
    ],
)
def test_a_link_that_takes_the_place_of_a_file_is_not_followed(
    mounted: Path, monkeypatch: pytest.MonkeyPatch, name: str, swap: Callable[[Path], None]
) -> None:
    """Whoever writes to the mounted volume could else read what only the Job can."""
    (mounted.parent / "secret").write_text("of another object")
    (mounted.parent / "elsewhere").mkdir()
    for each in ("apple.txt", "with space.txt"):
        (mounted.parent / "elsewhere" / each).write_text("of another object")

    def swapping(found: Mapping[str, SourceFile], request: SourceRequest) -> set[str]:
        swap(mounted / name)
        return {name}

    monkeypatch.setattr(source, "taken", swapping)
    with pytest.raises(StageError, match="changed while it was copied") as caught:
        source.run(request())
    assert (caught.value.reason, caught.value.final) == (Reason.SOURCE_CHANGED, False)
    assert not list((layout.ROOT / "sources").rglob("*.*"))


def test_a_source_that_changes_while_it_is_copied_is_tried_again(
    mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = mounted_files.copy

    def change_and_copy(file: SourceFile, target: Path) -> None:
        if file.name == "model.py":
            file.path.write_text("changed")
        copy(file, target)

    monkeypatch.setattr(mounted_files, "copy", change_and_copy)
    with pytest.raises(StageError, match="changed while it was copied") as caught:
        source.run(request())
    assert (caught.value.reason, caught.value.final) == (Reason.SOURCE_CHANGED, False)
    assert list((layout.ROOT / "sources").iterdir()) == []
