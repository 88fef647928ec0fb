"""How a new revision takes over."""

from typing import Literal

from triton_operator.api.schema import ApiType, RevisionName

OnInconclusive = Literal["Hold", "Continue", "Undo"]


class Rollout(ApiType):
    """How a new revision takes over from the active one."""

    on_inconclusive: OnInconclusive = "Hold"
    """What happens if a soak, or a step of a canary, has no verdict at its end, because there were too few requests or
    their counters could not be read. `Hold` goes on as it is, both revisions with their pods, and judges again as more
    requests come; 30 minutes after that end a Warning says so. `Continue` takes the canary's next step, or ends the
    soak, without a verdict. `Undo` goes back to the previous revision, as after a failure: an edit is then Stalled. A
    change of this field tries nothing again that was undone. Default: Hold, because no traffic proves nothing."""
    revision: RevisionName | None = None
    """Name of a revision that served before, which serves as long as the field is set, whatever the source and the rest
    of the spec ask for: until it is removed, no edit of the source is read, Ready is about this revision, and UpToDate
    is False. `kubectl triton history NAME` lists the names. A name is `KEY`, or `KEY.SERVER` where several servers of
    one key served: an edit of `serving` or of the server's image alone changes no key. `KEY` alone stands for the
    active revision if it has that key, or else for the last of its servers that served. The revision is started from
    its record, as it was made, without a soak or a canary. Default: none; the revision that the spec asks for
    serves."""
