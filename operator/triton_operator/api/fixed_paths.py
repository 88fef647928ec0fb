"""The absolute paths that the code of a Python step names: which of them a pod may have, and how they keep apart."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from triton_converters.contract import layout
from triton_converters.contract.uris import SEGMENT
from triton_operator.api.schema import rules

SYSTEM = (
    *("bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "opt", "proc", "root", "run", "sbin"),
    *("srv", "sys", "tmp", "usr", "var"),
)
"""Folders at the root of an image or a node. Triton, our programs and their Python are in `opt` and `usr`."""
TAKEN = (*SYSTEM, *sorted(mount.name for mount in layout.MOUNTS))
"""The folders at the root in which no path may lie: so none hides a program, or what the operator mounts."""
LONGEST = 255
"""Most characters of a path."""
PATTERN = rf"^(/{SEGMENT}){{1,8}}$"
_FORM = re.compile(PATTERN.strip("^$"))
IN_TAKEN = (
    "a path must not be in a folder of the system or of the operator at the root, such as /opt, /var or /data: choose"
    " another, such as /cache, or edit the code"
)
OVERLAP = (
    "no path of mountPath and scratchPaths may be, or lie in, another one of any model, because one server has all of"
    " them: only a path of scratchPaths may be named by several models"
)


def is_free(path: str) -> bool:
    """Whether a pod may have something mounted at the path, as a spec may say."""
    return len(path) <= LONGEST and _FORM.fullmatch(path) is not None and path.split("/")[1] not in TAKEN


def _checked(path: str) -> str:
    """Refuse what the CRD refuses, in objects that are older than its rule too."""
    if not is_free(path):
        raise ValueError(IN_TAKEN)
    return path


FixedPath = Annotated[
    str,
    StringConstraints(max_length=LONGEST, pattern=PATTERN),
    AfterValidator(_checked),
    Field(json_schema_extra=rules((f"!self.matches('^/({'|'.join(TAKEN)})(/|$)')", IN_TAKEN))),
]
"""A path that may be mounted."""


def apart_rule() -> tuple[str, str]:
    """Return the rule of a spec that its models' paths keep apart, but that several may write to one directory."""

    def scratch(model: str) -> str:
        return f"(has({model}.scratchPaths) ? {model}.scratchPaths : [])"

    others = "(has(o.mountPath) && o.name != m.name ? [o.mountPath] : [])"
    overlap = "(q + '/').startsWith(m.mountPath + '/') || (m.mountPath + '/').startsWith(q + '/')"
    mounted = f"!has(m.mountPath) || !({scratch('o')} + {others}).exists(q, {overlap})"
    written = f"!{scratch('m')}.exists(p, {scratch('o')}.exists(q, q.startsWith(p + '/')))"
    return f"self.models.all(m, self.models.all(o, ({mounted}) && {written}))", OVERLAP
