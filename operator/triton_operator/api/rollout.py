"""How a new revision takes over."""

from typing import Literal

from triton_operator.api.schema import ApiType, RevisionName

OnInconclusive = Literal["Hold", "Continue", "Undo"]


class Rollout(ApiType):
    """How a new revision takes over from the active one."""

    on_inconclusive: OnInconclusive = "Hold"
    """What happens if a soak, or a step of a canary, ends with too few requests for a verdict. `Hold` goes on with both
    revisions, and judges again. `Continue` goes on to the next step without a verdict. `Undo` goes back to the previous
    revision. Default: Hold, because no traffic proves nothing."""
    revision: RevisionName | None = None
    """Name of a revision that served before, from `kubectl triton history NAME`. It serves from its record while the
    field is set, whatever the rest of the spec asks for. A name is `KEY`, or `KEY.SERVER` where several servers had one
    key. Default: none; the revision that the spec asks for serves."""
