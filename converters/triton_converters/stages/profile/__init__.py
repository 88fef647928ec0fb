"""Stage ``profile``: compare the served candidate with the reference, then sweep it.

The pod's own tritonserver serves one revision and nothing else. A gate that fails is this stage's result, not its
failure: the other candidates continue, and a model that is wrong is not measured.
"""

from triton_converters.contract.reasons import Reason

GATES = frozenset(
    {
        Reason.PRECISION_MISMATCH,
        Reason.MODEL_LOAD_FAILED,
        Reason.SIGNATURE_MISMATCH,
        Reason.INFERENCE_FAILED,
        Reason.OUTPUTS_NOT_FINITE,
        Reason.OUTPUTS_DIFFER,
    }
)
"""Reasons that are a verdict on the candidate, from answers alone; any other ends the Job, which may run again."""
