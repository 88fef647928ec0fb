"""Every reason that can stand in a condition, a candidate or an event, with the sentence that explains it.

Shared by the Jobs and the controller; standard library only.
"""

from enum import StrEnum


class Reason(StrEnum):
    """A CamelCase reason; ``reason.doc`` is its sentence (source of docs/reasons.md)."""

    doc: str

    def __new__(cls, value: str, doc: str) -> "Reason":
        """Attach the sentence to the value."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.doc = doc
        return member

    # Progress, seen on conditions while work goes on or once it is done.
    PENDING = "Pending", "Nothing was observed yet."
    WAITING = "Waiting", "An earlier stage has to finish first."
    RUNNING = "Running", "The stage's Job runs."
    SUSPENDED = "Suspended", "spec.suspend is true: no new Job starts; what serves stays up."
    RESOLVED = "Resolved", "The source is published on the claim under its digest."
    CONVERTED = "Converted", "Every candidate was converted or has a recorded reason why not."
    VERIFIED = "Verified", "At least one candidate passed correctness and every accuracy threshold."
    NUMERICAL_ONLY = "NumericalOnly", "Outputs agree numerically; no accuracy threshold was asked for."
    SEARCHING = "Searching", "Other configurations of the best candidates are measured."
    AWAITING_APPROVAL = (
        "AwaitingApproval",
        "The ranking is complete, and spec.selection.approvedRevision names none of it yet.",
    )
    SELECTED = "Selected", "A candidate was chosen."
    APPROVED = "Approved", "The candidate that spec.selection.approvedRevision names was chosen."
    KEPT = "Kept", "What serves was chosen: no other candidate is better by minimumImprovementPercent."
    CLOSEST_SELECTED = (
        "ClosestSelected",
        "No candidate meets every constraint; as spec.selection.fallback says, the closest one was chosen.",
    )
    ROLLING_OUT = "RollingOut", "The target revision's server starts."
    NO_SPARE_GPU = "NoSpareGpu", "No GPU is free for the new revision, so the one that serves makes way for it."
    AVAILABLE = "Available", "The Service points to a server whose model is ready."
    MEASURED = "Measured", "The serving revision was measured through its Service."
    PERFORMANCE_REGRESSED = (
        "PerformanceRegressed",
        "The new source is slower than the last one that served, by more than performance.regression allows.",
    )
    NOT_COMPARED = (
        "NotCompared",
        "The new source and the last one that served were not measured alike, so performance.regression says nothing.",
    )
    READY = "Ready", "What the spec asks for serves, verified and measured."
    PROGRESSING = "Progressing", "Work towards the spec goes on."
    NO_STALL = "NoStall", "Nothing keeps the object from getting ready."

    # The operator's own fault.
    INTERNAL_ERROR = "InternalError", "The operator itself failed; it tries again, and what serves is left as it is."

    # What the user asked for cannot be, until the user changes something.
    INVALID_SPEC = "InvalidSpec", "The spec combines fields that do not go together."
    APPLY_REFUSED = "ApplyRefused", "The API server refused an object made from the spec."
    SOURCE_NOT_FOUND = "SourceNotFound", "The URI names nothing on the claim or in the ConfigMap."
    SOURCE_INVALID = (
        "SourceInvalid",
        "The source holds what cannot be published: a link that leaves it, a special file.",
    )
    DIGEST_MISMATCH = "DigestMismatch", "The source's SHA-256 is not the one in the spec."
    ENTRYPOINT_MISSING = "EntrypointMissing", "The source has no file of the entrypoint's name."
    ENTRYPOINT_INVALID = (
        "EntrypointInvalid",
        "The entrypoint's file lacks the function or class of the contract.",
    )
    ARGUMENTS_INVALID = "ArgumentsInvalid", "The user's function does not accept the arguments, or lacks one."
    USER_CODE_FAILED = "UserCodeFailed", "The user's code raised an exception."
    USER_CODE_EXITED = "UserCodeExited", "The user's code ended the process instead of returning."
    CHECKPOINT_INVALID = "CheckpointInvalid", "The checkpoint, or the model's own file, is missing or cannot be read."
    PICKLE_REFUSED = (
        "PickleRefused",
        "The checkpoint is a pickle with more than weights; it was not executed.",
    )
    MODEL_IN_TRAINING_MODE = (
        "ModelInTrainingMode",
        "get_model returned a module that is not in evaluation mode.",
    )
    DATALOADER_EMPTY = "DataloaderEmpty", "The dataloader yielded no batch."
    DATALOADER_INVALID = "DataloaderInvalid", "The dataloader's names, shapes or types do not fit the model."
    FRAMEWORK_FAILED = "FrameworkFailed", "The framework's model raised an exception on a real batch."
    REFERENCE_NOT_REPRODUCIBLE = "ReferenceNotReproducible", "The framework's model disagrees with itself."
    REFERENCE_NOT_FINITE = "ReferenceNotFinite", "The framework's own outputs hold NaN or infinity."
    REFERENCE_CONSTANT = (
        "ReferenceConstant",
        "An output is the same for every sample: agreement would prove nothing.",
    )
    APPROVAL_INVALID = (
        "ApprovalInvalid",
        "spec.selection.approvedRevision names no candidate, or one that failed or was not measured.",
    )
    LABELS_MISSING = "LabelsMissing", "A threshold is set and the dataloader yields no labels."

    # A candidate's own failures; the others go on.
    CONVERSION_FAILED = "ConversionFailed", "The exporter raised an exception."
    CONVERSION_UNSUPPORTED = "ConversionUnsupported", "This input does not convert into this format."
    PRECISION_MISMATCH = (
        "PrecisionMismatch",
        "The file's own data types are not those of the asked precision.",
    )
    TENSORRT_UNAVAILABLE = "TensorRtUnavailable", "The Job's image has no TensorRT, or the Job has no GPU to build for."
    TENSORRT_VERSION_MISMATCH = (
        "TensorRtVersionMismatch",
        "The engine was built with another TensorRT than the server has.",
    )
    FORMAT_NOT_SERVED = "FormatNotServed", "The server's release has no backend for the format."
    GPU_PRODUCT_MISSING = (
        "GpuProductMissing",
        "The candidate is built for one GPU, and spec.gpu.product is not set or no node has that product.",
    )
    NAMING_UNSUPPORTED = "NamingUnsupported", "The format cannot serve tensors of these names."
    MODEL_LOAD_FAILED = "ModelLoadFailed", "tritonserver refused the model."
    SIGNATURE_MISMATCH = "SignatureMismatch", "The server's metadata differs from the signature."
    OUTPUTS_NOT_FINITE = (
        "OutputsNotFinite",
        "The served outputs hold NaN or infinity where the reference has none.",
    )
    OUTPUTS_DIFFER = "OutputsDiffer", "The served outputs are outside the tolerance of the reference."
    INFERENCE_FAILED = "InferenceFailed", "The server answered an inference request with an error."
    METRIC_MISSING = "MetricMissing", "No metric of the threshold's name was computed."
    METRIC_FAILED = "MetricFailed", "The metrics entrypoint raised an exception."
    THRESHOLD_NOT_MET = "ThresholdNotMet", "A metric is outside its threshold."
    MEASUREMENT_FAILED = "MeasurementFailed", "perf_analyzer ended without a row."
    CONSTRAINTS_NOT_MET = "ConstraintsNotMet", "No measured row meets every constraint."
    NOT_BEST = "NotBest", "Another candidate's best row is better."
    PASSED = "Passed", "The candidate passed every gate."

    # Nobody passed.
    ALL_CANDIDATES_FAILED = "AllCandidatesFailed", "No candidate was converted, or none passed the gates."

    # What the cluster said about a pod or a Job.
    UNSCHEDULABLE = "Unschedulable", "No node takes the pod; the message quotes the scheduler."
    IMAGE_PULL_FAILED = "ImagePullFailed", "The kubelet cannot pull the image."
    MOUNT_FAILED = "MountFailed", "A volume of the pod cannot be mounted."
    CONTAINER_CONFIG_INVALID = "ContainerConfigInvalid", "The kubelet cannot create the container."
    EVICTED = "Evicted", "The cluster ended the pod: an eviction, a drained node, a preemption. Another one is made."
    NODE_NOT_READY = "NodeNotReady", "The node of the pod does not answer."
    CLAIM_LOST = "ClaimLost", "The PersistentVolumeClaim lost its volume."
    CLAIM_NOT_WRITABLE = "ClaimNotWritable", "The claim is mounted read-only, or its directory is another user's."
    STORAGE_FULL = "StorageFull", "No space is left on the claim."
    OUT_OF_MEMORY = "OutOfMemory", "A container was killed at its memory limit."
    DEADLINE_EXCEEDED = "DeadlineExceeded", "The Job ran past its activeDeadlineSeconds."
    CRASHED = "Crashed", "The container ended with an error of its own; the message quotes its last lines."
    RESULT_MISSING = "ResultMissing", "The Job succeeded without a valid result."
    SERVER_CRASHED = "ServerCrashed", "tritonserver ended with an error; the message quotes its last lines."
    SERVER_UNREACHABLE = (
        "ServerUnreachable",
        "tritonserver runs, but a request that was sent again and again brought no answer; the message says what came.",
    )
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded", "The server was not ready in time."


_BY_VALUE = {str(reason): reason for reason in Reason}


def reason_of(value: str) -> Reason:
    """The reason of that value; raises KeyError where there is none."""
    return _BY_VALUE[value]
