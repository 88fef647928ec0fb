"""How a new revision takes over."""

from typing import Literal

from triton_operator.api.schema import ApiType, RevisionName

OnInconclusive = Literal["Hold", "Continue", "Undo"]


class Rollout(ApiType):
    """How a new revision takes over from the active one."""

    on_inconclusive: OnInconclusive = "Hold"
    """What happens if a soak, or a step of a canary, ends without a verdict. `Hold` keeps both revisions, and judges
    again; `Continue` takes the next step, or keeps the new revision; `Undo` goes back. Default: Hold."""
    revision: RevisionName | None = None
    """Name of a revision that served before, from `kubectl triton history NAME`. It serves while the field is set,
    without a canary or a soak, whatever the rest of the spec says. Default: none."""
