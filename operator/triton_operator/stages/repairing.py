"""Repair: publish a revision anew, under another key, if its files on the claim are damaged. Pure.

The results ConfigMap remembers the keys of damaged revisions. While a key is among them, the conversion has the next
one, so it is published, profiled and rolled out as any other, and the servers that run stay until then. The converted
file itself is used again only if it is intact.
"""

from collections.abc import Mapping

from triton_converters.contract.reasons import Reason
from triton_operator.context import Context
from triton_operator.effects import Effects
from triton_operator.observed.failures import Damage
from triton_operator.observed.trouble import Trouble

REPAIRS = 2
"""How often a revision is published anew. If two repairs do not help, something goes on writing to the claim, and a
person has to find out what."""


def repair_refusal(context: Context, damages: Mapping[str, Damage]) -> Trouble | None:
    """Return why a damaged revision is not published anew once more; None: it may be."""
    recent = [damage for damage in damages.values() if damage.retry == context.triton_deployment.retry]
    if len(recent) <= REPAIRS:
        return None
    message = (
        f"the revision was damaged {len(recent)} times and is not published again: {recent[-1].message}; find out what"
        f" writes to PersistentVolumeClaim {context.claim_name}, then type: {context.retry_command}"
    )
    return Trouble(Reason.REPOSITORY_DAMAGED, message)


def record_damage_at_start(context: Context) -> Effects:
    """Record the damage that servers found when they started."""
    effects = Effects()
    for view in context.observed.servers.values():
        if view.damage is not None:
            effects += record_damage(context, view.revision_key, view.damage)
    return effects


def record_damage(context: Context, revision: str, trouble: Trouble) -> Effects:
    """Record that a revision is damaged, under its key."""
    damage_record = Damage(trouble.reason, trouble.message, context.now.isoformat(), context.triton_deployment.retry)
    return Effects(damaged={revision: damage_record})
