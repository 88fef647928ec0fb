"""What to do about a reason: the text of docs/troubleshooting.md, copied by hack/docs/advice.py."""

import json
from functools import cache
from importlib.resources import files
from shlex import quote

from triton_operator.api.source import FollowedSource
from triton_plugin.reading.subject import AGAIN, RETRY

NEW_VERSION, NEW_DIGEST = "set a new spec.source.version", "set spec.source.sha256 to the new digest"
NEXT_VERSION = "have the source offer a newer version, which the next look finds"
"""How an object learns of changed files: without and with a digest in its spec, and if it follows its source."""
CHANGE, EXPLANATION = "{change}", "{explanation}"
"""What stands in the copy for one of these, and for the command that explains an object."""
EXPLAIN = "(kubectl triton explain NAME)"
TRY_AGAIN = f"Run {AGAIN}"
LOCAL_WORDS = {
    EXPLAIN: "(kubectl triton explain objects.json)",
    NEW_DIGEST: "check again; if the object's file sets spec.source.sha256, set the new digest first",
    NEW_VERSION: "check again; if the source is downloaded, set a new spec.source.version first",
    "Nothing at first: the operator tries again": TRY_AGAIN,
    ", or wait an hour at most": "",
    ": kubectl triton push": "",
    ": kubectl triton rollback NAME --to-latest": "",
    "The Job's log has": "The Job's log, pods/POD/CONTAINER.log in the folder of the check, has",
    "the Helm value sources.caBundle": "the file that SSL_CERT_FILE names",
}
"""What stands for words about a cluster in the advice for an object that was checked on one machine."""
LOCAL = {
    "GpuProductMissing": "Remove spec.gpu, or check on a machine with such a GPU.",
    "GpuUnavailable": f"Update the driver of the GPU, as the message says. Then run {AGAIN}; or remove spec.gpu.",
    "InternalError": "A bug in the operator. Report it with the traceback that the command printed.",
    "RegistryBusy": f"Wait a moment. Then run {AGAIN}.",
    "RegistryFull": f"Make room in the registry, or raise its quota. Then run {AGAIN}.",
    "RegistryUnreachable": f"See whether this machine reaches the registry; HTTPS_PROXY names a proxy. Run {AGAIN}.",
    "RolledBack": "Nothing is wrong, but to check what is newer, remove spec.rollout.revision.",
    "ServerUnreachable": f"Look what else this machine is busy with. Then run {AGAIN}.",
    "SourceUnreachable": f"Look whether this machine reaches the host; HTTPS_PROXY names a proxy. Then run {AGAIN}.",
    "StorageFull": f"Free storage where the command keeps its folder. Then run {AGAIN}.",
    "TensorRtUnavailable": "Leave the candidate out: TensorRT is in no image of this command.",
}
"""What to do about a reason there, where a cluster's advice would not do."""


def change(source: FollowedSource | None) -> str:
    """Return how an object with this source learns of changed files."""
    if source is None:
        return NEW_VERSION
    if source.interval is not None:
        return NEXT_VERSION
    return NEW_DIGEST if source.sha256 else NEW_VERSION


@cache
def _advice_by_reason() -> dict[str, str]:
    text = files("triton_plugin.telling").joinpath("advice.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def known() -> list[str]:
    """Return the reasons about which there is something to do."""
    return sorted(_advice_by_reason())


def advice(
    reason: str,
    name: str = "NAME",
    place: str = "",
    *,
    source: FollowedSource | None = None,
    is_explained: bool = False,
    is_local: bool = False,
) -> str:
    """Return what to do as plain text; empty if there is nothing to do or nothing is known.

    ``name``, ``place``: of the object and its options, for the commands in it. ``source``: its spec.source.
    ``is_explained``: the explanation of the object is right below the text. ``is_local``: no cluster knows the object.
    """
    arguments = f"{quote(name)} {place}".rstrip()
    text = _advice_by_reason().get(reason, "").replace(EXPLANATION, "below" if is_explained else EXPLAIN)
    text = text.replace(CHANGE, change(source))
    if is_local:
        text = LOCAL.get(reason, text)
        for words, instead in LOCAL_WORDS.items():
            text = text.replace(words, instead)
        text = RETRY.sub(AGAIN, text)
    return text.replace(" NAME", f" {arguments}")
