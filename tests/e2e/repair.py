"""What was wrong is mended beside the object: more memory, room on the claim, another try asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.e2e.full_claim import FullClaim
from tests.e2e.kubectl import Object
from tests.e2e.state import State
from tests.e2e.suite import Suite

GREEDY = {
    "model": {
        "entrypoint": "greedy.py",
        "arguments": {"mebibytes": "1500"},
        "candidates": [
            {"name": "trace-fp32", "format": "ts-trace", "precision": "fp32"},
            {"name": "onnx-fp32", "format": "onnx", "precision": "fp32"},
        ],
    }
}


def limited(memory: str) -> Mapping[str, Any]:
    """models/greedy.py under a memory limit of its converters."""
    return {**GREEDY, "conversion": {"pod": {"resources": {"limits": {"memory": memory}}}}}


@dataclass(frozen=True)
class Mending:
    """The object while something was wrong, and after that was mended."""

    broken: State
    mended: State
    jobs: tuple[Object, ...]
    """That ran for the mended one and not for the broken one."""


def memory(suite: Suite) -> Mending:
    """One candidate's converter is killed for memory, the other serves; then there is more memory."""
    applied = suite.new("greedy")
    broken = applied.wait_ready(applied.apply(limited("1Gi"))).state
    jobs = applied.jobs()
    mended = applied.wait_ready(applied.apply(limited("4Gi"))).state
    after = applied.jobs()
    return Mending(broken, mended, tuple(after[uid] for uid in after.keys() - jobs.keys()))


def retry(suite: Suite) -> Mending:
    """get_model reads a file of spec.dataset that is not there; it is put there, and another try is asked for."""
    applied = suite.new("retried")
    fault = {"entrypoint": "faulty.py", "arguments": {"fault": "reads-file", "file": "$(DATASET)/late"}}
    generation = applied.apply({"dataset": {"uri": "pvc://models/data"}, "model": fault})
    failed = applied.wait("a failed reference", lambda state: state.holds("Stalled"), generation=generation)
    suite.workbench.run("touch", "/models/data/late")
    jobs = applied.jobs("reference")
    suite.busy.run("annotate", "td", applied.name, "triton-operator.dev/retry=once")
    mended = applied.wait("the reference", lambda state: bool(state.status.get("signature")), generation=generation)
    after = applied.jobs("reference")
    return Mending(failed.state, mended.state, tuple(after[uid] for uid in after.keys() - jobs.keys()))


def damage(suite: Suite) -> Mending:
    """A file of the active revision is changed on the claim, and the server's pod is deleted.

    The revision is this object's alone, and the file is replaced: other revisions have links to it.
    """
    applied = suite.new("damaged")
    generation = applied.apply({"model": {"config": {"instances": 2}}})
    before = applied.wait_ready(generation).state
    key = before.revision
    folder = f"/repository/.triton-operator/revisions/{key}/models"
    (file,) = suite.workbench.run("find", folder, "-name", "model.*").split()
    jobs = applied.jobs()
    suite.workbench.run("sh", "-c", f"cp {file} {file}.new && printf damaged >> {file}.new && mv -f {file}.new {file}")
    suite.busy.run(
        "delete", "pod", "--selector", f"triton-operator.dev/deployment={applied.name},triton-operator.dev/server"
    )
    broken = applied.wait(
        "a damaged revision", lambda state: state.says("Available", "RepositoryDamaged"), generation=generation
    )
    mended = applied.wait(
        "the revision under another key",
        lambda state: state.holds("UpToDate") and state.revision != key,
        generation=generation,
    )
    after = applied.jobs()
    return Mending(broken.state, mended.state, tuple(after[uid] for uid in after.keys() - jobs.keys()))


def storage(suite: Suite) -> Mending:
    """The claim is full; then what filled it is removed."""
    with FullClaim(suite.busy, suite.image, suite.kubelet) as claim:
        applied = suite.new("crowded")
        generation = applied.apply({"repository": {"claimName": claim.name}})
        full = applied.wait(
            "StorageFull", lambda state: state.says("SourceResolved", "StorageFull"), generation=generation
        )
        claim.empty()
        jobs = applied.jobs()
        mended = applied.wait("the source", lambda state: state.holds("SourceResolved"), generation=generation)
        after = applied.jobs()
        suite.busy.delete("td", applied.name)
        return Mending(full.state, mended.state, tuple(after[uid] for uid in after.keys() - jobs.keys()))
