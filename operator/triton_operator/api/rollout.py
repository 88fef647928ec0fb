"""How a new revision takes over."""

from typing import Literal

from triton_operator.api.schema import ApiType, RevisionName

OnInconclusive = Literal["Hold", "Continue", "Undo"]


class Rollout(ApiType):
    """How a new revision takes over from the active one."""

    on_inconclusive: OnInconclusive = "Hold"
    """What happens if a soak, or a step of a canary, has no verdict at its end, for too few requests or counters that
    could not be read. `Hold` goes on with both revisions, and judges again. `Continue` takes the canary's next step, or
    ends the soak and keeps the new revision. `Undo` goes back to the previous revision. Default: Hold, because no
    traffic proves nothing."""
    revision: RevisionName | None = None
    """Name of a revision that served before, from `kubectl triton history NAME`. It serves as it did, without a canary
    or a soak, while the field is set; until then no edit of the rest of the spec is served. A name is `KEY`, or
    `KEY.SERVER` where several servers had one key. Default: none; the revision that the spec asks for serves."""
