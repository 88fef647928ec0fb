"""The inverse of a push: the outputs that the claim keeps of the framework and of each candidate, to the user's disk.

Nothing that a pod sends is trusted: its archives are read as those of an unknown server.
"""

import re
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from triton_converters.contract import layout
from triton_converters.contract.failure import StageError, lacks_room
from triton_converters.contract.records import record_name
from triton_converters.fetch.tar_folder import unpack
from triton_operator import names
from triton_operator.api.status import CandidateStatus
from triton_operator.names import Body
from triton_operator.resources.pod import GPU_TAINT
from triton_plugin.drafting.push.files import CHUNK
from triton_plugin.drafting.push.objects import MOUNT, pod
from triton_plugin.drafting.push.sending import ProgramError, running
from triton_plugin.errors import PushError
from triton_plugin.reading.subject import Subject

FOLDER, REFERENCE = "outputs", "reference"
"""The folder of all outputs, and that of the framework's in it, which is also the name of the stage."""
IN_POD = Path(MOUNT, layout.ROOT.name)
"""The operator's own directory in the pod."""
NO_ROOM = "the outputs were not read: this machine's disk has no room for them"
_KEY, _CANDIDATE = re.compile(r"[0-9a-f]{16}"), re.compile(r"\w[-.\w]*", re.ASCII)


def claim_name(subject: Subject) -> str:
    """Return the name of the object's repository claim."""
    return subject.spec.repository.claim_name or names.claim(subject.name)


def places(subject: Subject, root: Path) -> dict[str, Path]:
    """Return where the outputs of the framework lie, by REFERENCE, and those of each candidate, by its name.

    ``root``: the operator's own directory. Of candidates, those that passed have some, if the spec has metrics. Raises
    PushError if no reference is recorded.
    """
    key = reference_key(subject)
    if not _KEY.fullmatch(key):
        raise PushError(
            f"no outputs of {subject.name} are recorded yet; try again once it has candidates that are converted"
        )
    return {REFERENCE: layout.reference_directory(key, root) / "batches"} | {
        each.name: layout.kept_outputs(each.profile_key, root)
        for each in subject.status.candidates
        if _has_outputs(subject, each)
    }


def reference_key(subject: Subject) -> str:
    """Return the key of the reference of the object's candidates; empty: none is recorded."""
    profiles = {record_name("profile", each.profile_key) for each in subject.status.candidates}
    # After an edit and its undoing, the newest reference is not the one of these candidates.
    served = next((state.records for state in subject.history.states if state.profile in profiles), None)
    prefix = record_name(REFERENCE, "")
    keys = [each.removeprefix(prefix) for each in served or subject.records if each.startswith(prefix)]
    return max(keys, key=partial(subject.finished_at, REFERENCE), default="")


def _has_outputs(subject: Subject, candidate: CandidateStatus) -> bool:
    profile = subject.profile(candidate)
    # The status and its records may be a stranger's.
    is_named = _CANDIDATE.fullmatch(candidate.name) and _KEY.fullmatch(candidate.profile_key)
    return bool(is_named and subject.spec.metrics is not None and profile is not None and profile.passed)


def fetch_converted(prefix: Sequence[str], subject: Subject, root: Path, folder: Path) -> list[Path]:
    """Copy the outputs of the converted files outside Triton, beside those that were served; return the new folders.

    A metrics Job keeps them together, as far as they are few. ``root`` and errors: as of ``places`` and ``fetch``.
    """
    of_key: dict[str, list[CandidateStatus]] = {}
    for each in subject.status.candidates:
        found = subject.metrics(each)
        is_named = _KEY.fullmatch(each.metrics_key) and _has_outputs(subject, each)
        if is_named and found and any(row.converted for row in found.candidates):
            of_key.setdefault(each.metrics_key, []).append(each)
    made = []
    for key, candidates in of_key.items():
        with TemporaryDirectory(prefix=".", dir=folder) as work:
            fetch(prefix, layout.measurement_directory(key, root), measurement := Path(work, key))
            for each in candidates:
                kept, target = measurement / layout.CONVERTED / each.profile_key, folder / f"{each.name}-outside-triton"
                if kept.is_dir():
                    shutil.rmtree(target, ignore_errors=True)
                    made.append(kept.rename(target))
    return made


def reader(name: str, subject: Subject, image: str) -> Body:
    """Return the pod that can only read the repository claim, where the object's own pods may run.

    A ReadWriteOnce claim is attached to their node.
    """
    body, settings = pod(name, claim_name(subject), image), subject.spec.pod
    spec = body["spec"]
    spec["volumes"][0]["persistentVolumeClaim"]["readOnly"] = True
    selector = {"matchLabels": {names.TRITON_DEPLOYMENT_LABEL: subject.name}}
    term = {"weight": 100, "podAffinityTerm": {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}}
    spec["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec["tolerations"] = [*(each.body() for each in settings.tolerations), GPU_TAINT]
    spec["imagePullSecrets"] = [{"name": each.name} for each in settings.image_pull_secrets]
    return body


def fetch(prefix: Sequence[str], place: Path, target: Path) -> None:
    """Copy a folder of files; it takes the place of what the target was.

    ``prefix``: the command line that runs what follows it where the folder is. Raises PushError, OSError; then the
    target is as it was.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".", dir=target.parent) as work:
        archive = Path(work, "archive")
        _receive([*prefix, "tar", "--create", "--file", "-", "--directory", str(place.parent), place.name], archive)
        try:
            unpack(archive, Path(work), place.name, ())
        except StageError as error:
            raise PushError(NO_ROOM if lacks_room(error) else f"{place} did not come as a folder of files") from error
        if target.exists():
            shutil.rmtree(target)
        Path(work, place.name).rename(target)


def _receive(command: Sequence[str], archive: Path) -> None:
    """Write what a program prints to a file. Raises PushError if it fails, or prints more than there is room for."""
    # What is unpacked needs as much again.
    room = shutil.disk_usage(archive.parent).free // 2
    try:
        with archive.open("wb") as file, running(command) as process:
            assert process.stdout is not None
            while part := process.stdout.read(CHUNK):
                room -= len(part)
                if room < 0:
                    raise PushError(NO_ROOM)
                file.write(part)
    except ProgramError as error:
        raise PushError(f"the outputs were not read: {error}") from error
