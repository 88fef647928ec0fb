"""What the cluster refuses a pod: a Secret that is not there, a claim that is read-only."""

import time
from dataclasses import dataclass

from tests.chaos.node.place import Place, told
from tests.e2e.bad_inputs import NO_IMAGE
from tests.e2e.full_claim import FullClaim
from tests.e2e.state import State

PATIENCE_SECONDS = 90


@dataclass(frozen=True)
class Refused:
    """The object with a missing Secret, and the one with a read-only claim."""

    secret: State
    claim: State
    tries: int
    """Pods of the Job that could not write."""


def run(place: Place) -> Refused:
    """Both, one after the other."""
    since = time.time()
    applied = place.new("secretless")
    applied.apply({"conversion": {"image": NO_IMAGE, "pod": {"imagePullSecrets": [{"name": "absent"}]}}})

    def names_it(state: State) -> bool:
        return "absent" in str(state.condition("Converted").get("message", ""))

    told(applied, "Converted", "ImagePullFailed", since, PATIENCE_SECONDS)
    generation = applied.state.generation
    secret = applied.wait("the Secret's name", names_it, generation=generation, seconds=PATIENCE_SECONDS).state
    with FullClaim(place.kubectl, place.image, place.kubelet, name="read-only", privileged=True) as claim:
        claim.empty()
        claim.make_read_only()
        applied = place.new("unwritable", repository={"claimName": claim.name})
        generation = applied.apply()
        refused = applied.wait("a refusal", lambda state: state.holds("Stalled"), generation=generation).state
        tries = len(applied.children("pods", stage="source"))
        place.kubectl.delete("td", "secretless", applied.name)
    return Refused(secret, refused, tries)
