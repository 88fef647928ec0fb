"""The shapes of the samples that were sent, in words. Pure."""

from triton_operator.api.measured_status import LengthsStatus, MixedShapesStatus


def sentences(mixed: MixedShapesStatus) -> str:
    """Return how the lengths of samples are distributed, and what larger requests stand for."""
    lengths = "; ".join(map(_lengths, mixed.lengths))
    return (
        f"Requests of one sample had the shapes of {mixed.samples} samples, {mixed.shapes} different ones, in an order"
        f" by chance{f': {lengths}' if lengths else ''}. Larger requests hold samples of one shape:"
        " for these, up to 3 shapes were measured, and a row stands for all of them in the samples' proportions."
    )


def _lengths(each: LengthsStatus) -> str:
    return (
        f"{each.input}, dimension {each.dimension}, is {each.min} to {each.max} long, in half of them at most"
        f" {each.median}, in nine of ten at most {each.p90}"
    )
