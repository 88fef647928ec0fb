"""Which failures a Job may tell of, and which its user code may not. Standard library only."""

from triton_converters.contract.reasons import Reason

_ALL = list(Reason)
FAILURES = frozenset(_ALL[_ALL.index(Reason.INVALID_SPEC) :]) - {Reason.PASSED}
"""The reasons that a Job may fail for. The others are the operator's words about progress and risks."""
RESERVED = frozenset(
    {
        Reason.FIELD_RENAMED,
        Reason.APPLY_REFUSED,
        Reason.NOT_ALLOWED,
        Reason.SOURCE_NOT_FOUND,
        Reason.SOURCE_ACCESS_DENIED,
        Reason.SOURCE_GATED,
        Reason.SOURCE_CERTIFICATE_INVALID,
        Reason.SOURCE_UNREACHABLE,
        Reason.SOURCE_TRUNCATED,
        Reason.SOURCE_CHANGED,
        Reason.DIGEST_MISMATCH,
        Reason.REQUIREMENTS_MISSING,
        Reason.REHEARSAL_NOT_SERVED,
        Reason.APPROVAL_INVALID,
        Reason.TENSORRT_VERSION_MISMATCH,
        Reason.FORMAT_NOT_SERVED,
        Reason.GPU_PRODUCT_MISSING,
        Reason.METRIC_MISSING,
        Reason.THRESHOLD_NOT_MET,
        Reason.CONSTRAINTS_NOT_MET,
        Reason.NOT_BEST,
        Reason.ALL_CANDIDATES_FAILED,
        Reason.UNSCHEDULABLE,
        Reason.IMAGE_PULL_FAILED,
        Reason.MOUNT_FAILED,
        Reason.CONTAINER_CONFIG_INVALID,
        Reason.EVICTED,
        Reason.NODE_NOT_READY,
        Reason.CLAIM_LOST,
        Reason.CLAIM_NOT_WRITABLE,
        Reason.REPOSITORY_DAMAGED,
        Reason.REPOSITORY_UNKNOWN,
        Reason.DEADLINE_EXCEEDED,
        Reason.PROGRESS_DEADLINE_EXCEEDED,
    }
)
"""Failures that only the operator or a container without user code may tell of: the operator publishes a damaged
revision anew, for example, and people act on all."""
TOLD_BY_USER_CODE = FAILURES - RESERVED
"""The failures that a container with user code, with a client of its server, or with pip may end with."""
