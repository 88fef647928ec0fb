"""The nights: what the pipeline registers or what breaks, and what has to become of it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Night:
    """One night of both models."""

    name: str
    spoil: tuple[str, str] = ("", "")
    """What models.train does wrong, for the trees and the network."""
    happens: str = "registered"
    """`registered`: a new version with the alias; else what breaks: `pending`, `flapping`, `away`, `expired`."""
    reasons: frozenset[str] = frozenset()
    """Of UpToDate, one of which has to be told of a registered version; empty: it serves in the end."""

    @property
    def good(self) -> bool:
        """Whether this night's version has to serve."""
        return not self.reasons and self.happens == "registered"


WORSE = frozenset({"ThresholdNotMet", "WorseThanBefore"})
BROKEN = frozenset(
    {"CheckpointInvalid", "FormatNotFound", "FrameworkFailed", "InputsNotGenerated", "ReferenceNotFinite"}
)
NIGHTS = (
    Night("as good as before"),
    Night("shuffled labels", ("labels", "labels"), reasons=WORSE),
    Night("half a file", ("half", "half"), reasons=BROKEN),
    Night("good again"),
    Night("one feature more", ("features", "features"), reasons=frozenset({"AwaitingApproval"})),
    Night("registered, and not READY yet", happens="pending"),
    Night("good, while another waits for a person"),
    Night("NaN among the weights", ("nan", "nan"), reasons=BROKEN),
    Night("columns exchanged in training", ("columns", "columns"), reasons=WORSE),
    Night("the registry is away", happens="away"),
    Night("good, and the registry is back"),
    Night("training cut short; too slow", ("unfinished", "slow"), reasons=WORSE | {"ConstraintsNotMet"}),
    Night("the credential expired", happens="expired"),
    Night("an alias that goes back and forth", happens="flapping"),
    Night("good, after all that"),
)
"""Ten bad ones, and five good ones."""
