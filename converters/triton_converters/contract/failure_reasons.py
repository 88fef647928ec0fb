"""Which failures a Job may tell of, and which its container `run` may. Standard library only.

All are lists of what is allowed, so that a new reason is the operator's alone until somebody adds it here.
"""

from triton_converters.contract.reasons import Reason

IN_ANY_RUN = frozenset(
    {
        Reason.SOURCE_INVALID,
        Reason.USER_CODE_EXITED,
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
    Reason.PACKAGE_CONFLICT,
    Reason.PACKAGE_HASH_MISMATCH,
    Reason.INDEX_ACCESS_DENIED,
    Reason.INDEX_UNREACHABLE,
    Reason.INDEX_UNTRUSTED,
}
"""The failures that a container with pip may end with: no other one asks an index."""
OF_USER_CODE = IN_ANY_RUN | {
    Reason.INVALID_SPEC,
    Reason.ENTRYPOINT_MISSING,
    Reason.ENTRYPOINT_INVALID,
    Reason.ARGUMENTS_INVALID,
    Reason.USER_CODE_FAILED,
    Reason.CHECKPOINT_INVALID,
    Reason.WEIGHTS_WITHOUT_MODEL,
    Reason.FORMAT_NOT_FOUND,
    Reason.MODEL_CONFIG_REFUSED,
    Reason.MODEL_CONFIG_MISMATCH,
    Reason.PICKLE_REFUSED,
    Reason.MODEL_IN_TRAINING_MODE,
    Reason.DATALOADER_EMPTY,
    Reason.DATALOADER_INVALID,
    Reason.INPUTS_NOT_GENERATED,
    Reason.FRAMEWORK_FAILED,
    Reason.GPU_UNAVAILABLE,
    Reason.REFERENCE_NOT_REPRODUCIBLE,
    Reason.BATCHING_UNSUPPORTED,
    Reason.REFERENCE_NOT_FINITE,
    Reason.REFERENCE_CONSTANT,
    Reason.LABELS_MISSING,
    Reason.CONVERSION_FAILED,
    Reason.CONVERSION_UNSUPPORTED,
    Reason.PRECISION_MISMATCH,
    Reason.QUANTIZATION_GAINS_NOTHING,
    Reason.TENSORRT_UNAVAILABLE,
    Reason.NAMING_UNSUPPORTED,
    Reason.MODEL_LOAD_FAILED,
    Reason.SIGNATURE_MISMATCH,
    Reason.OUTPUTS_NOT_FINITE,
    Reason.OUTPUTS_DIFFER,
    Reason.METRIC_FAILED,
}
"""The failures that a container with the user's code may end with."""
OF_CLIENTS = IN_ANY_RUN | {
    Reason.INVALID_SPEC,
    Reason.MODEL_CONFIG_MISMATCH,
    Reason.PRECISION_MISMATCH,
    Reason.MODEL_LOAD_FAILED,
    Reason.SIGNATURE_MISMATCH,
    Reason.OUTPUTS_NOT_FINITE,
    Reason.OUTPUTS_DIFFER,
    Reason.ACCELERATOR_UNUSED,
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
        Reason.SOURCE_ACCESS_DENIED,
        Reason.SOURCE_GATED,
        Reason.SOURCE_CERTIFICATE_INVALID,
        Reason.SOURCE_UNREACHABLE,
        Reason.SOURCE_TRUNCATED,
        Reason.SOURCE_CHANGED,
        Reason.DIGEST_MISMATCH,
        Reason.REQUIREMENTS_MISSING,
        Reason.TENSORRT_VERSION_MISMATCH,
        Reason.CLAIM_NOT_WRITABLE,
        Reason.INPUT_MISSING,
        Reason.REPOSITORY_DAMAGED,
        Reason.REPOSITORY_UNKNOWN,
    }
)
"""The failures that a Job may end with. Those that no container `run` may tell of are of the source, of the claim and
of the server's release: the operator publishes a damaged revision anew, for example, and people act on all. What the
operator itself finds, such as a pod that no node takes, no Job may tell of."""
