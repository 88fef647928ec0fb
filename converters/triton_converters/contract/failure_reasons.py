"""Which failures a Job may tell of, and which its container `run` may. Standard library only.

All are lists of what is allowed, so that a new reason is the operator's alone until somebody adds it here.
"""

from triton_converters.contract.reasons import Reason

IN_ANY_RUN = frozenset(
    {
        Reason.SOURCE_INVALID,
        Reason.USER_CODE_FAILED,
        Reason.STORAGE_FULL,
        Reason.OUT_OF_MEMORY,
        Reason.CRASHED,
        Reason.RESULT_MISSING,
    }
)
"""The failures that every container `run` may end with, whatever it does."""
OF_PACKAGES = IN_ANY_RUN | {
    Reason.REQUIREMENTS_INVALID,
    Reason.PACKAGE_NOT_FOUND,
    Reason.DIGEST_MISMATCH,
    Reason.SOURCE_ACCESS_DENIED,
    Reason.SOURCE_UNREACHABLE,
    Reason.INDEX_UNTRUSTED,
}
"""The failures that a container with pip may end with: no other one asks an index."""
OF_USER_CODE = IN_ANY_RUN | {
    Reason.INVALID_SPEC,
    Reason.ENTRYPOINT_INVALID,
    Reason.CHECKPOINT_INVALID,
    Reason.FORMAT_NOT_FOUND,
    Reason.MODEL_CONFIG_REFUSED,
    Reason.PICKLE_REFUSED,
    Reason.DATALOADER_INVALID,
    Reason.INPUTS_NOT_GENERATED,
    Reason.FRAMEWORK_FAILED,
    Reason.GPU_UNAVAILABLE,
    Reason.REFERENCE_NOT_REPRODUCIBLE,
    Reason.BATCHING_UNSUPPORTED,
    Reason.REFERENCE_NOT_FINITE,
    Reason.REFERENCE_CONSTANT,
    Reason.CONVERSION_FAILED,
    Reason.CONVERSION_UNSUPPORTED,
    Reason.PRECISION_MISMATCH,
    Reason.GAINS_NOTHING,
    Reason.TENSORRT_UNAVAILABLE,
    Reason.MODEL_LOAD_FAILED,
    Reason.SIGNATURE_MISMATCH,
    Reason.OUTPUTS_NOT_FINITE,
    Reason.OUTPUTS_DIFFER,
    Reason.METRIC_FAILED,
}
"""The failures that a container with the user's code may end with."""
OF_CLIENTS = IN_ANY_RUN | {
    Reason.INVALID_SPEC,
    Reason.MODEL_CONFIG_REFUSED,
    Reason.PRECISION_MISMATCH,
    Reason.MODEL_LOAD_FAILED,
    Reason.SIGNATURE_MISMATCH,
    Reason.OUTPUTS_NOT_FINITE,
    Reason.OUTPUTS_DIFFER,
    Reason.GAINS_NOTHING,
    Reason.INFERENCE_FAILED,
    Reason.MEASUREMENT_FAILED,
    Reason.SERVER_CRASHED,
    Reason.SERVER_UNREACHABLE,
}
"""The failures that a container with a client of its server may end with: no other one asks a server."""
FAILURES = (
    OF_PACKAGES
    | OF_USER_CODE
    | OF_CLIENTS
    | {
        Reason.SOURCE_NOT_FOUND,
        Reason.SOURCE_CERTIFICATE_INVALID,
        Reason.SOURCE_TRUNCATED,
        Reason.SOURCE_CHANGED,
        Reason.FORMAT_NOT_SERVED,
        Reason.CLAIM_UNUSABLE,
        Reason.INPUT_MISSING,
        Reason.REPOSITORY_DAMAGED,
        Reason.REPOSITORY_UNKNOWN,
    }
)
"""The failures that a Job may end with. Those that no container `run` may tell of are of the source, of the claim and
of the server's release: the operator publishes a damaged revision anew, for example, and people act on all. What the
operator itself finds, such as a pod that no node takes, no Job may tell of."""
