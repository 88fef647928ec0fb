"""Which absolute paths a Python step may have: none that a program of the image or a mount of ours is at."""

import re
from pathlib import Path

import pytest
import yaml

from triton_converters.contract import layout
from triton_operator.api.fixed_paths import IN_TAKEN, PATTERN, SYSTEM, TAKEN, is_free

PAGES = Path(__file__).parents[1] / "golden/objects"
FREE = (
    *("/models/whisper_mel_worker/1", "/cache", "/mnt/models", "/workspace/a.b-c_d", "/varia/x", "/optional"),
    *("/a/b/c/d/e/f/g/h", "/models..old", "/Tmp"),
)
REFUSED = (
    *("", "/", "cache", "cache/x", "//cache", "/cache/", "/cache//x", "/./cache", "/cache/.", "/cache/..", "/a/../opt"),
    *("/..", "/...", "/.cache", "/a/.b", "/-a", "/a b", "/a:b", "/a:ro", "/a,b", "/a\\b", "/a\nb", "/a\n", "/a\x00"),
    *("/caché", "/\uff4fpt", "/o\u200bpt", "/$(POD_UID)", "/a$b", "/~", "/*", "/a'b", '/a"b', "/a=b", "/lost+found"),
    *("/a/b/c/d/e/f/g/h/i", f"/{'a' * 255}"),
)


@pytest.mark.parametrize("path", FREE)
def test_a_path_at_which_nothing_is_may_be_mounted(path: str) -> None:
    assert is_free(path)


@pytest.mark.parametrize("path", REFUSED, ids=ascii)
def test_a_path_of_another_form_is_refused(path: str) -> None:
    assert not is_free(path)
    # The form is the CRD's too, but for the length: RE2 takes $ for the end of the text alone.
    assert re.fullmatch(PATTERN.strip("^$"), path) is None or len(path) > 255


@pytest.mark.parametrize("name", TAKEN)
def test_no_path_is_or_lies_in_a_folder_of_the_system_or_ours(name: str) -> None:
    assert not any(map(is_free, (f"/{name}", f"/{name}/x", f"/{name}/models/a/1")))
    assert all(map(is_free, (f"/{name}s0", f"/x/{name}", f"/{name.upper()}")))


def test_the_message_for_a_path_that_is_taken_is_short_and_its_example_is_free() -> None:
    assert len(IN_TAKEN) < 160
    taken, free = IN_TAKEN.split(": ")
    assert {each.strip("/") for each in re.findall(r"/\w+", taken)} <= set(TAKEN)
    assert all(map(is_free, re.findall(r"/\w+", free)))


def test_the_folders_that_are_ours_are_all_that_the_layout_has() -> None:
    ours = {value for name, value in vars(layout).items() if name.endswith("MOUNT")}
    assert set(layout.MOUNTS) == ours
    assert set(TAKEN) == {*SYSTEM, *(each.name for each in ours)}
    assert {each.parent.as_posix() for each in ours} == {"/"}


def test_no_mount_of_any_container_can_be_hidden() -> None:
    pods = [
        yaml.safe_load(page.read_text(encoding="utf-8"))["spec"]["template"]["spec"]
        for kind in ("Job", "Deployment")
        for page in PAGES.glob(f"{kind}-*.yaml")
    ]
    containers = [each for pod in pods for each in (*pod.get("initContainers", []), *pod["containers"])]
    found = {mount["mountPath"] for each in containers for mount in each["volumeMounts"]}
    assert found >= {"/repository", "/incoming", "/tmp", "/dev/shm", "/source"}
    assert {each.split("/")[1] for each in found} - set(TAKEN) == set()
