"""An image's archive is unpacked into its folder, and nowhere else."""

import io
import json
import tarfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from tests.conftest import Attack
from triton_local.images import Images

File = tuple[str, str]
"""A name and a content: `->` and a link's target, `=>` and a hard link's, `/` for a folder."""


def a_tar(files: Sequence[File]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            if content == "/":
                member.type = tarfile.DIRTYPE
            elif content[:2] in ("->", "=>"):
                member.type = tarfile.SYMTYPE if content[0] == "-" else tarfile.LNKTYPE
                member.linkname = content[2:]
            else:
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content.encode()))
    return made.getvalue()


def an_image(
    path: Path, *layers: Sequence[File], environment: Sequence[str] = ("A=1",), named: Sequence[Sequence[File]] = ()
) -> Path:
    """An archive of docker's format with these layers. ``named``: others, which its configuration names."""
    made = {"Env": list(environment), "WorkingDir": "/work", "Entrypoint": ["run"]}
    digests = [f"sha256:{sha256(each).hexdigest()}" for each in map(a_tar, named or layers)]
    config = json.dumps({"config": made, "rootfs": {"type": "layers", "diff_ids": digests}})
    names = [f"{number}.tar" for number in range(len(layers))]
    manifest = json.dumps([{"Config": "config.json", "Layers": names}])
    with tarfile.open(path, "w") as archive:
        contents = [*zip(names, map(a_tar, layers), strict=True), ("config.json", config.encode())]
        for name, content in [*contents, ("manifest.json", manifest.encode())]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def unpacked(tmp_path: Path, *layers: Sequence[File]) -> Path:
    """The folder of an image with these layers."""
    images = Images(tmp_path / "images")
    images.image(images.add("an/image", an_image(tmp_path / "image.tar", *layers)))
    (folder,) = (tmp_path / "images").iterdir()
    return folder


def test_layers_lie_over_each_other(tmp_path: Path) -> None:
    lower = [("usr/", "/"), ("usr/old", "old"), ("usr/kept", "kept"), ("bin", "->usr"), ("etc/", "/"), ("etc/x", "x")]
    upper = [
        ("usr/.wh.old", ""),
        ("bin/new", "new"),
        ("etc/.wh..wh..opq", ""),
        ("etc/y", "y"),
        ("usr/same", "=>usr/kept"),
    ]
    folder = unpacked(tmp_path, lower, upper)
    found = {each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()}
    assert found == {".image.json", "usr/kept", "usr/new", "usr/same", "etc/y"}
    assert (folder / "usr/same").read_text() == "kept"


@pytest.mark.parametrize(
    "files",
    [
        [("../victim/file", "planted")],
        [("/victim/file", "planted")],
        [("../victim/.wh.precious", "")],
        [("../victim/.wh..wh..opq", "")],
        [("away", "->{victim}"), ("away/file", "planted")],
        [("away", "->{victim}"), ("away/.wh.precious", "")],
        [("away", "->{victim}"), ("copy", "=>away/precious")],
        [("up", "->.."), ("up/up/file", "planted")],
        [(".wh...", "")],
        [("usr/", "/"), ("usr/.wh...", "")],
    ],
)
def test_no_file_leads_out_of_the_image(tmp_path: Path, attack: Attack, files: list[File]) -> None:
    attack("an image's archive", ", ".join(name + content for name, content in files), "refused")
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("kept")
    with pytest.raises(ValueError, match="out of it"):
        unpacked(tmp_path, [(name, content.replace("{victim}", str(victim))) for name, content in files])
    assert [each.name for each in victim.iterdir()] == ["precious"]
    assert list((tmp_path / "images").iterdir()) == []


@pytest.mark.parametrize("layers", [[[("usr", "hostile")]], [], [[("usr", "honest")], [("usr", "hostile")]]])
def test_other_layers_do_not_stand_for_an_image(tmp_path: Path, attack: Attack, layers: list[list[File]]) -> None:
    attack("an image's archive", f"the configuration of another image, and {layers}", "refused")
    honest = [("usr", "honest")]
    images = Images(tmp_path / "images")
    forged = images.add("an/image", an_image(tmp_path / "forged.tar", *layers, named=[honest]))
    with pytest.raises(ValueError):
        images.image(forged)
    name = images.add("an/image", an_image(tmp_path / "image.tar", honest))
    images.image(name)
    assert name == forged
    assert (tmp_path / "images" / name.rpartition(":")[2] / "usr").read_text() == "honest"


def test_an_image_s_links_are_neither_written_nor_followed(tmp_path: Path, attack: Attack) -> None:
    attack("an image's archive", "links in the place of its configuration, and to a file of the user", "not followed")
    (tmp_path / "precious").write_text("kept")
    away = f"->{tmp_path}/precious"
    folder = unpacked(tmp_path, [(".image.json", away), ("link", away), ("copy", "=>link")])
    assert (tmp_path / "precious").read_text() == "kept"
    assert (tmp_path / "precious").stat().st_nlink == 1
    assert not (folder / ".image.json").is_symlink()
    assert (folder / "copy").is_symlink()


def test_what_a_killed_engine_has_half_unpacked_is_removed(tmp_path: Path) -> None:
    images = Images(tmp_path / "images")
    name = images.add("an/image", an_image(tmp_path / "image.tar", [("a", "a")]))
    half = tmp_path / "images" / f".{name.rpartition(':')[2]}"
    half.mkdir(parents=True)
    (half / "b").touch()
    images.image(name)
    (folder,) = (tmp_path / "images").iterdir()
    assert {each.name for each in folder.iterdir()} == {".image.json", "a"}


def test_an_image_is_known_by_its_digest(tmp_path: Path) -> None:
    images = Images(tmp_path / "images")
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
    first = images.add("an/image", an_image(tmp_path / "x" / "image.tar", [("a", "a")]))
    other = images.add("an/image", an_image(tmp_path / "y" / "image.tar", [("a", "a")], environment=("B=2",)))
    assert first != other
    assert images.image(first).environment == {"A": "1"}
    assert images.image(other).environment == {"B": "2"}
    assert images.image(other).id == other
    with pytest.raises(LookupError):
        images.image("an/image@sha256:" + "0" * 64)


@pytest.mark.parametrize("content", [b"", b"no archive", a_tar([("manifest.json", "[]")]), a_tar([("x", "y")])])
def test_what_is_no_archive_of_an_image_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match="is no archive of an image"):
        Images(tmp_path / "images").add("an/image", tmp_path / "file")
