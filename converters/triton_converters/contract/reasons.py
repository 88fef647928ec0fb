"""Every reason that a condition, a candidate or an event can have, with the sentence that explains it.

Shared by the Jobs and the controller; standard library only.
"""

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """A CamelCase reason; ``reason.doc`` is its sentence (source of docs/reasons.md)."""

    doc: str

    def __new__(cls, value: str, doc: str) -> Self:
        """Attach the sentence to the value."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.doc = doc
        return member

    # Progress: conditions show these while work goes on or once it is done.
    PENDING = "Pending", "Nothing has been observed yet."
    WAITING = "Waiting", "An earlier stage must finish first."
    RUNNING = "Running", "The stage's Job is running, or the search measures other configurations."
    QUEUED = "Queued", "The stage's Job is suspended, by Kueue or by someone else; it goes on once it is not."
    SUSPENDED = (
        "Suspended",
        "spec.suspend is true: no new Job starts, and the active revision keeps running."
        " Or spec.serving.replicas is 0: no server runs.",
    )
    RESOLVED = "Resolved", "The source is published on the repository claim under its digest."
    CONVERTED = "Converted", "Every candidate was converted, or the reason why it was not is recorded."
    VERIFIED = "Verified", "At least one candidate agrees with the reference and meets every accuracy threshold."
    NUMERICAL_ONLY = "NumericalOnly", "The outputs agree with the reference; the spec sets no accuracy threshold."
    GENERATED_INPUTS = (
        "GeneratedInputs",
        "The outputs agree with the reference for generated inputs; without a dataloader, accuracy is not judged.",
    )
    AWAITING_APPROVAL = (
        "AwaitingApproval",
        "The ranking is complete, but spec.selection.approvedRevision does not name a candidate in it yet.",
    )
    SELECTED = "Selected", "A candidate was selected, by its figures or by spec.selection.approvedRevision."
    KEPT = "Kept", "The active candidate was kept: no other one is better by minImprovementPercent."
    CLOSEST_SELECTED = (
        "ClosestSelected",
        "No candidate meets every constraint, so the closest one was selected, as spec.selection.fallback says.",
    )
    ROLLING_OUT = "RollingOut", "The target revision's server is starting."
    NO_SPARE_GPU = "NoSpareGpu", "No GPU is free for the target revision, so the active revision makes room for it."
    AVAILABLE = "Available", "The Service points to a server whose model is ready."
    MEASURED = "Measured", "The active revision was measured through its preview Service."
    PERFORMANCE_REGRESSED = (
        "PerformanceRegressed",
        "The new source is slower than the last active one by more than performance.regression allows.",
    )
    NOT_COMPARED = (
        "NotCompared",
        "The new source and the last active one were not measured alike, so performance.regression cannot be checked.",
    )
    READY = "Ready", "The revision that the spec asks for is active, verified and measured."
    PROGRESSING = "Progressing", "The operator is working towards the spec."
    NO_STALL = "NoStall", "Nothing prevents the object from becoming ready."

    # Risks: they stop nothing.
    SHARED_CLAIM = (
        "SharedClaim",
        "Other TritonDeployments use the same repository claim; one of them can fill it for all.",
    )

    # Notices: they stop nothing either.
    NEW_CANDIDATES = (
        "NewCandidates",
        "This version of the operator would choose other candidates for a model whose spec lists none; it keeps to"
        " those in status.resolved.",
    )

    NEW_IMAGES = (
        "NewImages",
        "The installation has other images than the object keeps, such as a newer server; it keeps to those in"
        " status.images.",
    )

    REHEARSED = (
        "Rehearsed",
        "The user's code asked for a GPU and ran on the CPU, because its Jobs have none. Nothing of it is served on a"
        " GPU.",
    )

    # Of spec.serving.autoscaling: the replicas stay as they are, and nothing else stops.
    SCALING = "Scaling", "KEDA scales the object by the load on its active revision."
    SCALING_PAUSED = (
        "ScalingPaused",
        "The load is not the clients' alone for a moment, or no server is wanted; the replicas stay as they are.",
    )
    ADD_ON_MISSING = (
        "AddOnMissing",
        "A field needs KEDA, Prometheus or the Gateway API, and the cluster or the installation has none.",
    )
    SATURATION_UNKNOWN = (
        "SaturationUnknown",
        "No measurement says what one replica of the active revision can do, so nothing is scaled.",
    )

    # Of spec.serving.route: nothing else stops.
    ROUTE_ACCEPTED = "RouteAccepted", "Each Gateway that the route names accepts it."
    ROUTE_REFUSED = (
        "RouteRefused",
        "A Gateway does not accept the route, does not find its Services, or has its host name from another object.",
    )

    # Of spec.serving.soak and of the canary.
    CANARY = "Canary", "The new revision gets a share of the route's requests, and is judged by them step by step."
    SOAKING = "Soaking", "The revision has just become active; the previous one still runs, to come back if need be."
    SOAK_PASSED = "SoakPassed", "The new revision did well on its first requests; the previous one was deleted."
    SOAK_FAILED = (
        "SoakFailed",
        "The new revision failed requests, was slower, restarted or stopped answering, or had no verdict and"
        " spec.rollout.onInconclusive is Undo. So the previous one is active, as before. The new one is not tried again"
        " until the spec or the source changes, or somebody asks for it.",
    )
    ROLLOUT_HELD = (
        "RolloutHeld",
        "The soak, or the canary's step, has had no verdict for half an hour after its time: there were too few"
        " requests, or their counters could not be read. Both revisions stay as they are, and are judged as more"
        " requests come.",
    )
    SOAK_INCONCLUSIVE = (
        "SoakInconclusive",
        "The new revision stays without a verdict: it got few requests, or the counters could not be read or compared.",
    )

    # Of spec.rollout.revision.
    ROLLED_BACK = "RolledBack", "spec.rollout.revision holds a revision that served before, whatever the source says."
    REVISION_UNKNOWN = (
        "RevisionUnknown",
        "spec.rollout.revision names no revision that can be served again; the active revision keeps serving.",
    )

    # What the operator tries again by itself, with growing pauses.
    APPLY_FAILED = (
        "ApplyFailed",
        "Objects could not be written for some time, as where an admission webhook fails; the operator tries again.",
    )
    REQUEST_FAILED = (
        "RequestFailed",
        "A request to the API server, such as one that reads an object, fails for some time; the operator tries again.",
    )
    STATUS_REFUSED = (
        "StatusRefused",
        "The API server refuses the status for some time; the operator tries again, and the active revision stays.",
    )
    INTERNAL_ERROR = "InternalError", "The operator itself failed; it tries again and leaves the active revision alone."
    CONTESTED = "Contested", "Another client keeps undoing what the operator applies; an Event names the objects."
    SOURCE_NOT_FOUND = (
        "SourceNotFound",
        "The URI names nothing on the claim, in the ConfigMap or on the server; the operator tries again.",
    )
    SOURCE_UNREACHABLE = (
        "SourceUnreachable",
        "The server of the source, or the package index, does not answer or stopped sending; the operator tries again.",
    )
    SOURCE_TRUNCATED = (
        "SourceTruncated",
        "The server of the source sent less or more than it had announced; the operator tries again.",
    )
    SOURCE_CHANGED = (
        "SourceChanged",
        "The source changed again and again while it was copied to the claim; the operator tries again.",
    )

    # Failures that last until somebody changes something.
    INVALID_SPEC = (
        "InvalidSpec",
        "A value or an argument is refused, fields do not go together, or there are too many labels.",
    )
    APPLY_REFUSED = "ApplyRefused", "The API server refused an object that the operator made from the spec."
    NOT_ALLOWED = (
        "NotAllowed",
        "The spec, or the recorded revision that it names, has an image, a claim, a ServiceAccount, a Gateway or a"
        " host name that this installation does not allow, or a model whose Python code would run inside the server; or"
        " it asks for traces without a collector; or the record of that revision is not one that the operator writes.",
    )
    SOURCE_INVALID = (
        "SourceInvalid",
        "The source holds something that cannot be published, such as a link that leaves it or a special file.",
    )
    SOURCE_ACCESS_DENIED = (
        "SourceAccessDenied",
        "The server of the source, or the package index, refused the credentials, or asks for some or for terms.",
    )
    SOURCE_CERTIFICATE_INVALID = (
        "SourceCertificateInvalid",
        "The certificate of the source's server is not one that the source Job trusts.",
    )
    DIGEST_MISMATCH = "DigestMismatch", "The SHA-256 of the source, or of a package, is not the one that is asked for."
    ENTRYPOINT_INVALID = (
        "EntrypointInvalid",
        "The entrypoint's file is missing, lacks the function or class, or does not return what is required.",
    )
    REQUIREMENTS_INVALID = (
        "RequirementsInvalid",
        "The requirements file is missing, or holds a line that is not a plain requirement; the message names it.",
    )
    PACKAGE_NOT_FOUND = (
        "PackageNotFound",
        "The package index has no wheels of the packages that fit each other and the image, and that pip installs.",
    )
    INDEX_UNTRUSTED = (
        "IndexUntrusted",
        "The certificate of the package index is not one that the packages Job trusts, or the index redirects to plain"
        " http.",
    )
    USER_CODE_FAILED = "UserCodeFailed", "The user's code raised an exception, or ended the process."
    CHECKPOINT_INVALID = "CheckpointInvalid", "The checkpoint, or the model's own file, is missing or cannot be read."
    FORMAT_NOT_FOUND = (
        "FormatNotFound",
        "The spec leaves out the model's format, and its content, such as weights alone, is of no such format.",
    )
    MODEL_CONFIG_REFUSED = (
        "ModelConfigRefused",
        "config.pbtxt cannot be read, does not fit the model's file, or asks for what the operator does not serve.",
    )
    PICKLE_REFUSED = "PickleRefused", "The checkpoint is a pickle that holds more than weights; it was not executed."
    DATALOADER_INVALID = (
        "DataloaderInvalid",
        "The dataloader yields no batch, no labels for a threshold, or names, shapes or types that do not fit.",
    )
    INPUTS_NOT_GENERATED = (
        "InputsNotGenerated",
        "There is no dataloader, and no inputs could be generated that the model's graph accepts.",
    )
    FRAMEWORK_FAILED = "FrameworkFailed", "The model, or a Python step, failed, crashed, or gave what cannot be served."
    GPU_UNAVAILABLE = (
        "GpuUnavailable",
        "The user's code, PyTorch or TensorFlow should use a GPU, but the Job has none or its image does not see it.",
    )
    REFERENCE_NOT_REPRODUCIBLE = (
        "ReferenceNotReproducible",
        "The framework's model, or a Python step, gives different outputs for the same samples.",
    )
    BATCHING_UNSUPPORTED = (
        "BatchingUnsupported",
        "The framework's model, or a Python step, answers a sample in a batch otherwise than alone, or not at all.",
    )
    REFERENCE_NOT_FINITE = "ReferenceNotFinite", "The outputs of the model, or a Python step, hold NaN or infinity."
    REFERENCE_CONSTANT = (
        "ReferenceConstant",
        "An output is the same for every sample, so agreement would prove nothing.",
    )
    APPROVAL_INVALID = (
        "ApprovalInvalid",
        "spec.selection.approvedRevision names no candidate, or one that failed or was not measured.",
    )

    # A candidate's own failures; the others go on.
    CONVERSION_FAILED = "ConversionFailed", "The exporter failed or crashed, or the file does not fit the signature."
    CONVERSION_UNSUPPORTED = (
        "ConversionUnsupported",
        "The format cannot hold the model or its tensors' names, or no server the Python step.",
    )
    GAINS_NOTHING = (
        "GainsNothing",
        "No INT8 graph is both faster than fp32 and close to it, or TensorRT inside ONNX Runtime built no engine.",
    )
    PRECISION_MISMATCH = (
        "PrecisionMismatch",
        "The converted file's data types are not those of the requested precision.",
    )
    TENSORRT_UNAVAILABLE = "TensorRtUnavailable", "The Job's image has no TensorRT, or the Job has no GPU to build for."
    FORMAT_NOT_SERVED = (
        "FormatNotServed",
        "The server's release has no backend for the format, or reads no such ONNX operator set or TensorRT engine.",
    )
    GPU_PRODUCT_MISSING = (
        "GpuProductMissing",
        "The candidate, or the comparison of several, needs one GPU product, but none is set or no node has it.",
    )
    MODEL_LOAD_FAILED = "ModelLoadFailed", "tritonserver refused the model."
    SIGNATURE_MISMATCH = "SignatureMismatch", "The server's metadata differs from the signature."
    OUTPUTS_NOT_FINITE = "OutputsNotFinite", "The served outputs hold NaN or infinity where the reference has none."
    OUTPUTS_DIFFER = "OutputsDiffer", "The served outputs are outside the tolerance of the reference."
    INFERENCE_FAILED = "InferenceFailed", "The server answered an inference request with an error."
    METRIC_FAILED = "MetricFailed", "The metrics entrypoint raised an exception, or computed no metric of that name."
    THRESHOLD_NOT_MET = "ThresholdNotMet", "A metric is outside its threshold."
    MEASUREMENT_FAILED = "MeasurementFailed", "perf_analyzer ended without a measurement."
    CONSTRAINTS_NOT_MET = "ConstraintsNotMet", "No measurement meets every constraint."
    NOT_BEST = "NotBest", "Another candidate's best measurement is better."
    PASSED = "Passed", "The candidate passed every gate."

    # No candidate is left.
    ALL_CANDIDATES_FAILED = "AllCandidatesFailed", "No candidate was converted, or none passed the gates."

    # What the cluster said about a pod or a Job.
    UNSCHEDULABLE = "Unschedulable", "No node can run the pod; the message quotes the scheduler."
    IMAGE_PULL_FAILED = "ImagePullFailed", "The kubelet cannot pull the image."
    MOUNT_FAILED = "MountFailed", "A volume of the pod cannot be mounted."
    SIDECAR_NOT_STARTED = (
        "SidecarNotStarted",
        "A container that the cluster added to the pod, such as a mesh's proxy, has not started; the others wait.",
    )
    CONTAINER_CONFIG_INVALID = "ContainerConfigInvalid", "The kubelet cannot create the container."
    EVICTED = (
        "Evicted",
        "The cluster ended the pod (an eviction, a drained node or a preemption); another one is created, unless the"
        " kubelet ended three in a row because they, or their node, were short of disk or memory.",
    )
    NODE_NOT_READY = (
        "NodeNotReady",
        "The pod's node does not answer; or it failed the pod of a Job, which is tried again later.",
    )
    CLAIM_LOST = "ClaimLost", "The PersistentVolumeClaim lost its volume."
    CLAIM_TERMINATING = "ClaimTerminating", "The PersistentVolumeClaim is being deleted, and goes with its last pod."
    CLAIM_UNUSABLE = (
        "ClaimUnusable",
        "The claim is mounted read-only or for one pod at a time, or its directory belongs to another user.",
    )
    REPOSITORY_DAMAGED = (
        "RepositoryDamaged",
        "A revision on the claim is not what was published; it is published anew, and running servers stay.",
    )
    REPOSITORY_UNKNOWN = "RepositoryUnknown", "The claim's .triton-operator is not this operator's, or holds more."
    STORAGE_FULL = "StorageFull", "No space is left on the claim."
    OUT_OF_MEMORY = "OutOfMemory", "A container was killed at its memory limit."
    DEADLINE_EXCEEDED = "DeadlineExceeded", "The Job's pod ran past its activeDeadlineSeconds."
    CRASHED = "Crashed", "The container ended with an error; the message quotes its last lines."
    RESULT_MISSING = "ResultMissing", "The Job left no valid result, or the claim lacks the revision of a server."
    INPUT_MISSING = "InputMissing", "The claim lacks what an earlier Job published there, which is made again."
    SERVER_CRASHED = "ServerCrashed", "tritonserver ended with an error, or hung as it loaded; the message says which."
    SERVER_UNREACHABLE = (
        "ServerUnreachable",
        "tritonserver's name has no address, or a request got no answer although it was sent several times.",
    )
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded", "The server was not ready in time."


_BY_VALUE = {str(reason): reason for reason in Reason}


def known_reason(value: str) -> Reason | None:
    """Return the reason with that value; None: another version has it, or nobody."""
    return _BY_VALUE.get(value)


def reason_of(value: str) -> Reason:
    """Return the reason with that value; raises KeyError if there is none."""
    return _BY_VALUE[value]
