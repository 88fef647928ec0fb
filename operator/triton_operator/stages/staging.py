"""Stage a newer version of a followed source: it takes all steps, and waits for a person before it serves. Pure."""

from triton_converters.contract.results import Signature
from triton_operator.context import Context
from triton_operator.jobs.source import followed, serving_version
from triton_operator.stages.same_graph import has_served_tensors


def reason_to_stage(context: Context, signature: Signature) -> str:
    """Return why a person has to approve the version that was taken, in words; empty: nobody has to.

    ``signature``: the inputs and outputs of that version.
    """
    known, source = followed(context), context.spec.source
    taken = known.taken
    if taken is None or known.is_asked or context.active_server is None:
        return ""
    if taken.version == serving_version(context):
        return ""
    if source.interval is None:
        return f"{taken.label} was taken before spec.source.interval was removed"
    if source.on_change == "Stage":
        return f"{taken.label} is staged, as spec.source.onChange asks"
    if not has_served_tensors(context, signature):
        return f"{taken.label} is staged, because its inputs or outputs are not those that clients know"
    return ""
