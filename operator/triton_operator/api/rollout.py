"""How a new revision takes over."""

from typing import Literal

from triton_operator.api.schema import ApiType, ResultKey

OnInconclusive = Literal["Hold", "Continue", "Undo"]


class Rollout(ApiType):
    """How a new revision takes over from the active one."""

    on_inconclusive: OnInconclusive = "Hold"
    """What happens if a soak, or a step of a canary, has no verdict at its end, because there were too few requests or
    their counters could not be read. `Hold` goes on as it is, both revisions with their pods, and judges again as more
    requests come; 30 minutes after that end a Warning says so. `Continue` takes the canary's next step, or ends the
    soak, without a verdict. `Undo` goes back to the previous revision, as after a failure: an edit is then Stalled. A
    change of this field tries nothing again that was undone. Default: Hold, because no traffic proves nothing."""
    revision: ResultKey | None = None
    """Key of a revision that served before, which serves as long as the field is set, whatever the source and the rest
    of the spec ask for: until it is removed, no edit of the source is read, Ready is about this revision, and UpToDate
    is False. `kubectl triton history NAME` lists the keys. The revision is started from its record, as it was made,
    without a soak or a canary. Of states that differ in `serving` or the server's image alone the key is one, and
    stands for the last. Default: none; the revision that the spec asks for serves."""
