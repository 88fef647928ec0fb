"""How Jobs failed and revisions were damaged, as recorded in the results ConfigMap. Pure.

A recorded failure outlives its Job. A person who deletes a failed Job cannot be told from a policy that deletes all of
them, and such a policy must not repeat a failure for ever. So another try is asked for by an annotation. Only what
passes by itself is tried again without one, after a pause that the recorded times decide.
"""

from dataclasses import dataclass

from triton_converters.contract.document import Document
from triton_converters.contract.reasons import Reason
from triton_operator.observed.trouble import Trouble


@dataclass(frozen=True)
class Damage(Document):
    """The damage of a revision on the claim. The revision is published anew under another key."""

    reason: Reason
    message: str
    at: str
    """When the damage was noticed, in RFC 3339, UTC."""
    retry: str = ""
    """The object's retry annotation at that time; another value allows further repairs."""


@dataclass(frozen=True)
class Failure(Document):
    """The failure of one Job, or what is wrong with the figures that one measured."""

    uid: str
    """uid of the Job that failed; a Job of the same name made since has not failed. Empty: its figures are judged."""
    reason: Reason
    message: str
    retry: str = ""
    """The object's retry annotation at that time; another value asks for another try."""
    since: str = ""
    """Since when the work has failed, over all tries, in RFC 3339, UTC; empty: the failure does not pass by
    itself."""
    at: str = ""
    """When the last try was seen to fail, in RFC 3339, UTC; empty as `since` is."""

    @property
    def trouble(self) -> Trouble:
        """The failure as the status tells it."""
        return Trouble(self.reason, self.message)
