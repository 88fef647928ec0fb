"""Hostile termination messages through a real kubelet, each read by the operator as that of a Job of an object.

An object whose source is on a claim that does not exist has a Job whose pod no node takes. A pod that names this Job as
its owner, with its labels and containers, is then the newest of the Job's pods, and costs a second, not a conversion.
"""

import base64
import time
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from tests.e2e.applied import Applied, DisappointedError
from tests.e2e.kubectl import Object
from tests.e2e.state import State
from tests.e2e.suite import Suite
from tests.hostile_messages import messages

T = TypeVar("T")
AT_A_TIME = 3
SAY = """
import base64, sys, zlib
with open("/dev/termination-log", "wb") as log:
    log.write(zlib.decompress(base64.b64decode(sys.argv[1])))
sys.exit(1)
"""
STAGE = "source"
USER_CODE = "run"
"""The container of user code; it runs before the Job's own, which has the stage's name."""
PATIENCE_SECONDS = 180.0
TRIES = 3
"""Once a speaker has ended, the Job gets a pod again, and that is the newest. If a busy machine kept the operator from
looking in between, another speaker comes."""


def run(suite: Suite) -> Mapping[str, State]:
    """The state of an object for each message that a test asks for, once the operator has read it."""
    with ThreadPoolExecutor(AT_A_TIME) as executor:
        said = {
            what: executor.submit(attempt, suite, f"said-{number}", what)
            for number, what in enumerate(messages(STAGE, "0" * 16))
            if what in suite.cases
        }
    return {what: each.result() for what, each in said.items()}


def attempt(suite: Suite, name: str, what: str) -> State:
    """Apply an object, let a pod of its Job leave the message, and wait for what the operator makes of it."""
    applied = suite.new(name)
    generation = applied.apply({"source": {"uri": "pvc://absent/suite"}})
    applied.wait("its Job", lambda state: bool(applied.jobs(STAGE)), generation=generation)
    (job,) = applied.jobs(STAGE).values()
    waits = eventually("a pod of the Job", lambda: pod_of(applied, job))
    # Of two pods of the same second, the operator could take the Job's own for the newer one.
    time.sleep(1)
    key = job["metadata"]["labels"]["triton-operator.dev/key"]
    speakers = [f"{name}-{number}" for number in range(TRIES)]
    try:
        for speaker_name in speakers:
            applied.kubectl.apply(speaker(suite.image, job, speaker_name, messages(STAGE, key)[what]))
            try:
                return heard(applied, speaker_name, what, generation)
            except DisappointedError as error:
                missed = error
        raise missed
    finally:
        applied.kubectl.delete("td", name, wait=False)
        applied.kubectl.delete("pod", *speakers, waits["metadata"]["name"], wait=False)


def heard(applied: Applied, speaker_name: str, what: str, generation: int) -> State:
    """What the operator makes of the pod; raises DisappointedError."""
    said = f"pod {speaker_name}, container {USER_CODE}"
    return applied.wait(
        f"what is said of {what}",
        lambda state: (
            state.says("SourceResolved", "UserCodeFailed")
            or said in str(state.condition("SourceResolved").get("message"))
        ),
        generation=generation,
        seconds=PATIENCE_SECONDS,
    ).state


def speaker(image: str, job: Object, name: str, message: bytes) -> Object:
    """A pod with the labels and the owner of the Job's own, whose user code leaves the message and fails.

    Without the finalizer of the Job's own pods, the Job controller does not count it.
    """
    meta = job["metadata"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}
    labels = job["spec"]["template"]["metadata"]["labels"]
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
    packed = base64.b64encode(zlib.compress(message, 9)).decode()
    container: dict[str, Any] = {"image": image, "imagePullPolicy": "IfNotPresent", "securityContext": security}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
            "initContainers": [container | {"name": USER_CODE, "command": ["python3", "-c", SAY, packed]}],
            "containers": [container | {"name": STAGE, "command": ["sleep", "0"]}],
        },
    }


def pod_of(applied: Applied, job: Object) -> Object | None:
    """The pod that the Job controller made."""
    found = applied.kubectl.items("pods", f"--selector=batch.kubernetes.io/controller-uid={job['metadata']['uid']}")
    return found[0] if found else None


def eventually(what: str, look: Callable[[], T | None]) -> T:
    """What is found once there is something; raises AssertionError."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := look()) is None:
        assert time.monotonic() < deadline, f"there is not {what}"
        time.sleep(0.5)
    return found
