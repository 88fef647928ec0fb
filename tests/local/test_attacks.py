"""A hostile program in the box of `kubectl triton check`, as an ordinary user and as root start it: it reaches nothing.

docs/security.md and docs/check.md say what is promised, and what is not.
"""

import json
import multiprocessing
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import Attack
from tests.local import attempts
from tests.local.pods import PATIENCE_SECONDS, Cluster, a_container, an_owner
from triton_local import boxed, install
from triton_local.runtime import Image, Mount

ORDINARY_ID = 1000
IS_ROOT = os.geteuid() == 0
STARTED_BY = ("an ordinary user", "root") if IS_ROOT else ("an ordinary user",)
PODS = {
    "user code": ("Job", "convert"),
    "the measuring client": ("Job", "measure"),
    "a Python step that serves": ("Deployment", "serve"),
}
"""Who attacks, and the kind and the stage of the pod's owner."""
PLACES = {"home": "/", "folder": "/", "port": "0", "socket": "", "engine": "1"}
ATTEMPTS = sorted({**attempts.beyond(PLACES), **attempts.within()})
CASES = [(starter, who, attempt) for starter in STARTED_BY for who in PODS for attempt in ATTEMPTS]
Came = Mapping[str, Mapping[str, str]]


def an_image(interpreter: Path) -> Image:
    """What `kubectl triton check` shows of this machine."""
    paths = [*map(Path, install.SYSTEM), *([] if interpreter.is_relative_to("/usr") else [Path(sys.base_prefix)])]
    shown = [each for each in paths if each.exists() and not each.is_symlink()]
    links = {str(each): str(each.readlink()) for each in paths if each.is_symlink() and len(each.parts) == 2}
    mounts = tuple(Mount(each, str(each), read_only=True) for each in shown)
    return Image("this machine@sha256:0", mounts, links, {"PATH": "/usr/bin:/bin"}, ("sh",), "/")


def attack_from(
    kind: str, stage: str, cluster: Cluster, interpreter: Path, places: Mapping[str, str]
) -> dict[str, str]:
    """Start a pod that tries everything, and return what came of it."""
    mounts = [
        {"name": "given", "mountPath": "/given", "readOnly": True},
        {"name": "scratch", "mountPath": "/scratch"},
    ]
    stays = 600 if kind == "Deployment" else 0
    variables = {"PLACES": json.dumps(places), "STAYS": str(stays)}
    main = a_container("main", "", volumeMounts=mounts) | {
        "command": [str(interpreter), "/given/attempts.py"],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
    }
    volumes = [{"name": "given", "persistentVolumeClaim": {"claimName": "given"}}, {"name": "scratch", "emptyDir": {}}]
    started = cluster.start(an_owner(main=main, volumes=volumes, kind=kind, stage=stage))
    number = len(cluster.pods) - 1
    end = time.monotonic() + PATIENCE_SECONDS
    while "CAME " not in (said := cluster.log("main", number)) and time.monotonic() < end:
        time.sleep(0.1)
    started.end()
    started.join(PATIENCE_SECONDS)
    found: dict[str, str] = json.loads(said.rpartition("CAME ")[2].partition("\n")[0])
    return found


def attacked(folder: Path, user: int, interpreter: Path) -> None:
    """Attack from each kind of pod, as that user of this machine, and write down what came of it."""
    if user != os.geteuid():
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    (folder / "work/claims/given").mkdir(parents=True)
    shutil.copy(folder / "attempts.py", folder / "work/claims/given")
    os.environ["TOKEN_OF_THE_ENGINE"] = "secret"
    # Others test at the same time.
    name = f"{folder.parent.name}-{folder.name}"
    with ExitStack() as servers:
        open_to_all = servers.enter_context(socket.create_server(("127.0.0.1", 0)))
        without_file = servers.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        without_file.bind(f"\0{name}")
        without_file.listen()
        places = {
            "home": str(Path.home()),
            "folder": str(folder),
            "port": str(open_to_all.getsockname()[1]),
            "socket": name,
            "engine": str(os.getpid()),
        }
        cluster = Cluster(folder / "work", image=an_image(interpreter), runtime=boxed.Box(str(interpreter)))
        found = {who: attack_from(*pod, cluster, interpreter, places) for who, pod in PODS.items()}
    (folder / "work/came.json").write_text(json.dumps(found), encoding="utf-8")


@pytest.fixture(scope="module")
def came() -> Iterator[Mapping[str, Came]]:
    """What came of each attempt, by who attacked and who had started the box."""
    found = {}
    with tempfile.TemporaryDirectory() as kept, pytest.MonkeyPatch.context() as patched:
        Path(kept).chmod(0o755)
        program = Path(kept, "box.py")
        shutil.copy(boxed.BOX, program)
        # An ordinary user may read neither this checkout nor its interpreter.
        patched.setattr(boxed, "BOX", program)
        for starter in STARTED_BY:
            is_other = IS_ROOT and starter != "root"
            user = ORDINARY_ID if is_other else os.geteuid()
            interpreter = Path("/usr/bin/python3" if is_other else os.path.realpath(sys.executable))
            folder = Path(kept, f"folder-{user}")
            folder.mkdir()
            shutil.copy(attempts.__file__, folder)
            os.chown(folder, user, -1)
            process = multiprocessing.get_context("fork").Process(target=attacked, args=(folder, user, interpreter))
            process.start()
            process.join(len(PODS) * PATIENCE_SECONDS)
            assert process.exitcode == 0, starter
            found[starter] = json.loads((folder / "work/came.json").read_text(encoding="utf-8"))
        yield found


@pytest.mark.parametrize(("starter", "who", "attempt"), CASES)
def test_it_reaches_nothing(came: Mapping[str, Came], attack: Attack, starter: str, who: str, attempt: str) -> None:
    result = came[starter][who][attempt]
    attack(f"{who}, started by {starter}", attempt, result)
    assert "REACHED" not in result
