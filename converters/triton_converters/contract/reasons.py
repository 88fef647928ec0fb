"""Every reason that a condition, a candidate or an event can have: the one table of them.

Shared by the Jobs and the controller; standard library only.
"""

from enum import StrEnum
from typing import Self

from triton_converters.contract.reason_kinds import Containers, Kind


class Reason(StrEnum):
    """A reason; its value is its name in CamelCase, so that of ``ROLLING_OUT`` is ``RollingOut``.

    ``doc`` is the sentence that explains it (source of docs/reasons.md), ``kind`` what has to happen until the work
    goes on, and ``found_by`` the containers that may end with it. What another container says is taken for ``Crashed``.
    """

    doc: str
    kind: Kind
    found_by: Containers

    @staticmethod
    def _generate_next_value_(name: str, *_: object) -> str:
        """Return the value of a reason with the name."""
        return name.title().replace("_", "")

    def __new__(cls, value: str, doc: str, kind: Kind, found_by: Containers) -> Self:
        """Attach the row to the value."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.doc, member.kind, member.found_by = doc, kind, found_by
        return member

    WAITING = Kind.GOES_ON("An earlier stage must finish first, or the looks of other objects.")
    RUNNING = Kind.GOES_ON("The stage's Job is running, or the search measures other configurations.")
    QUEUED = Kind.WAITS(
        "The stage's Job waits for its turn to measure, or is suspended, by Kueue or by someone else; it goes on later."
    )
    SUSPENDED = Kind.PAUSED("spec.suspend is true: no new Job starts. Or spec.serving.replicas is 0: no server runs.")
    RESOLVED = Kind.DONE("The source is published on the repository claim under its digest.")
    CONVERTED = Kind.DONE("Every candidate was converted, or the reason why it was not is recorded.")
    VERIFIED = Kind.DONE("At least one candidate agrees with the reference and meets every accuracy threshold.")
    NUMERICAL_ONLY = Kind.DONE("The outputs agree with the reference; the spec sets no accuracy threshold.")
    GENERATED_INPUTS = Kind.DONE(
        "The outputs agree with the reference for generated inputs; without a dataloader, accuracy is not judged."
    )
    AWAITING_APPROVAL = Kind.PAUSED(
        "The ranking is complete, but spec.selection.approvedRevision does not name a candidate in it yet."
    )
    SELECTED = Kind.DONE("A candidate was selected, by its figures or by spec.selection.approvedRevision.")
    KEPT = Kind.DONE("The active candidate was kept: no other one is better by minImprovementPercent.")
    CLOSEST_SELECTED = Kind.DONE(
        "No candidate meets every constraint, so the closest one was selected, as spec.selection.fallback says."
    )
    ROLLING_OUT = Kind.GOES_ON("The target revision's server is starting.")
    NO_SPARE_GPU = Kind.NOTICE("No GPU is free for the target revision, so the active revision makes room for it.")
    AVAILABLE = Kind.DONE("The Service points to a server whose model is ready.")
    MEASURED = Kind.DONE("The active revision was measured through its preview Service.")
    PUBLISHED = Kind.DONE("The revision is an image in the registry, which was read back.")
    PERFORMANCE_REGRESSED = Kind.RETRY(
        "The new source is slower than the last active one by more than performance.regression allows."
    )
    NOT_COMPARED = Kind.NOTICE(
        "The new source and the last active one were not measured alike, so performance.regression cannot be checked."
    )
    READY = Kind.DONE("The revision that the spec asks for is active, verified and measured.")
    PROGRESSING = Kind.GOES_ON("The operator is working towards the spec.")
    NO_STALL = Kind.DONE("Nothing prevents the object from becoming ready.")
    NEWER_VERSION = Kind.NOTICE(
        "The source has a newer version than that of the active revision, and spec.source.onChange is Notify."
    )
    VERSION_UNSETTLED = Kind.WAITS(
        "A look found a newer version, and another one has to find it too: files may be half written, and an alias may"
        " change back."
    )
    SHARED_CLAIM = Kind.NOTICE(
        "Other TritonDeployments use the same repository claim; one of them can fill it for all."
    )
    NEW_CANDIDATES = Kind.NOTICE(
        "This version of the operator would choose other candidates; it keeps to those in status.resolved."
    )
    NEW_IMAGES = Kind.NOTICE("The installation has other images than those in status.images, which the object keeps.")
    LOCAL = Kind.NOTICE("Jobs and servers were processes of one machine, without a cluster.")
    REHEARSED = Kind.NOTICE("The user's code asked for a GPU and ran on the CPU; nothing of it is served on a GPU.")
    SCALING = Kind.DONE("KEDA scales the object by the load on its active revision.")
    SCALING_PAUSED = Kind.WAITS("The load is not the clients' alone for a moment, or no server is wanted.")
    ADD_ON_MISSING = Kind.OUTSIDE(
        "A field needs KEDA, Prometheus or the Gateway API, and the cluster or the installation has none."
    )
    SATURATION_UNKNOWN = Kind.SPEC(
        "No measurement says what one replica of the active revision can do, so nothing is scaled."
    )
    ROUTE_ACCEPTED = Kind.DONE("Each Gateway that the route names accepts it.")
    ROUTE_REFUSED = Kind.OUTSIDE(
        "A Gateway does not accept the route, does not find its Services, or has its host name from another object."
    )
    CANARY = Kind.TRIAL("The new revision gets a share of the route's requests, and is judged by them step by step.")
    SOAKING = Kind.TRIAL("The revision has just become active; the previous one still runs, to come back if need be.")
    SOAK_PASSED = Kind.DONE("The new revision did well on its first requests; the previous one was deleted.")
    SOAK_FAILED = Kind.RETRY(
        "The new revision failed requests, was slower, restarted or stopped answering, or had no verdict and"
        " spec.rollout.onInconclusive is Undo. So the previous one is active."
    )
    ROLLOUT_HELD = Kind.NOTICE(
        "The soak, or the canary's step, has had no verdict for half an hour after its time: there were too few"
        " requests, or their counters could not be read."
    )
    SOAK_INCONCLUSIVE = Kind.NOTICE(
        "The new revision stays without a verdict: it got few requests, or the counters could not be read or compared."
    )
    ROLLED_BACK = Kind.NOTICE("spec.rollout.revision holds a revision that served before, whatever the source says.")
    REVISION_UNKNOWN = Kind.SPEC("spec.rollout.revision names no revision that can be served again.")
    APPLY_FAILED = Kind.PASS("Objects could not be written for some time; the operator tries again.")
    REQUEST_FAILED = Kind.PASS("A request to the API server fails for some time; the operator tries again.")
    STATUS_REFUSED = Kind.PASS("The API server refuses the status for some time; the operator tries again.")
    INTERNAL_ERROR = Kind.PASS("The operator itself failed; it tries again.")
    CONTESTED = Kind.OUTSIDE("Another client keeps undoing what the operator applies; an Event names the objects.")
    SOURCE_NOT_FOUND = Kind.ANSWERS(
        "The URI names nothing on the claim, in the ConfigMap or on the server; the operator tries again.",
        Containers.OURS,
    )
    SOURCE_UNREACHABLE = Kind.ANSWERS(
        "The server of the source, or the package index, does not answer or stopped sending; the operator tries again.",
        Containers.PIP,
    )
    SOURCE_TRUNCATED = Kind.ANSWERS(
        "The server of the source sent less or more than it had announced; the operator tries again.", Containers.OURS
    )
    SOURCE_CHANGED = Kind.ANSWERS(
        "The source changed again and again while it was copied to the claim; the operator tries again.",
        Containers.OURS,
    )
    INVALID_SPEC = Kind.SPEC(
        "A value or an argument is refused, fields do not go together, or there are too many labels.",
        Containers.USER_CODE | Containers.CLIENT,
    )
    APPLY_REFUSED = Kind.OUTSIDE("The API server refused an object that the operator made from the spec.")
    NOT_ALLOWED = Kind.OUTSIDE(
        "The spec, or the recorded revision that it names, asks for what this installation does not allow, such as an"
        " image or a claim; or the record of that revision is not one that the operator writes."
    )
    POD_REFUSED = Kind.OUTSIDE(
        "The cluster refuses the pod of a Job or a server until somebody changes something, such as a LimitRange."
    )
    SOURCE_INVALID = Kind.FILES(
        "The source holds something that cannot be published, such as a link that leaves it or a special file.",
        Containers.RUN,
    )
    SOURCE_ACCESS_DENIED = Kind.RIGHTS(
        "The server of the source, or the package index, refused the credentials, or asks for some or for terms.",
        Containers.PIP,
    )
    SOURCE_CERTIFICATE_INVALID = Kind.RIGHTS(
        "The certificate of the source's server is not one that the source Job trusts.", Containers.OURS
    )
    DIGEST_MISMATCH = Kind.EITHER(
        "The SHA-256 of the source, or of a package, is not the one that is asked for.", Containers.PIP
    )
    ENTRYPOINT_INVALID = Kind.FILES(
        "The entrypoint's file is missing, lacks the function or class, or does not return what is required.",
        Containers.USER_CODE,
    )
    REQUIREMENTS_INVALID = Kind.FILES(
        "The requirements file is missing, or holds a line that is not a plain requirement; the message names it.",
        Containers.PIP,
    )
    PACKAGE_NOT_FOUND = Kind.EITHER(
        "The package index has no wheels of the packages that fit each other and the image, and that pip installs.",
        Containers.PIP,
    )
    INDEX_UNTRUSTED = Kind.RETRY(
        "The certificate of the package index is not one that the packages Job trusts, or the index redirects to plain"
        " http.",
        Containers.PIP,
    )
    USER_CODE_FAILED = Kind.FILES("The user's code raised an exception, or ended the process.", Containers.RUN)
    CHECKPOINT_INVALID = Kind.FILES(
        "The checkpoint, or the model's own file, is missing or cannot be read.", Containers.USER_CODE
    )
    FORMAT_NOT_FOUND = Kind.FILES(
        "The spec leaves out the model's format, and its content, such as weights alone, is of none that is served.",
        Containers.USER_CODE,
    )
    MODEL_CONFIG_REFUSED = Kind.FILES(
        "config.pbtxt cannot be read, does not fit the model's file, or asks for what the operator does not serve.",
        Containers.USER_CODE | Containers.CLIENT,
    )
    PICKLE_REFUSED = Kind.FILES(
        "The checkpoint is a pickle that holds more than weights; it was not executed.", Containers.USER_CODE
    )
    DATALOADER_INVALID = Kind.FILES(
        "The dataloader yields no batch, no labels for a threshold, or names, shapes or types that do not fit.",
        Containers.USER_CODE,
    )
    INPUTS_NOT_GENERATED = Kind.FILES(
        "There is no dataloader, and no inputs could be generated that the model's graph accepts.", Containers.USER_CODE
    )
    FRAMEWORK_FAILED = Kind.FILES(
        "The model, or a Python step, failed, crashed, or gave what cannot be served.", Containers.USER_CODE
    )
    GPU_UNAVAILABLE = Kind.RETRY(
        "The user's code, PyTorch or TensorFlow should use a GPU, but the Job has none or its image does not see it.",
        Containers.USER_CODE,
    )
    REFERENCE_NOT_REPRODUCIBLE = Kind.FILES(
        "The framework's model, or a Python step, gives different outputs for the same samples.", Containers.USER_CODE
    )
    BATCHING_UNSUPPORTED = Kind.FILES(
        "The framework's model, or a Python step, answers a sample in a batch otherwise than alone, or not at all.",
        Containers.USER_CODE,
    )
    REFERENCE_NOT_FINITE = Kind.FILES(
        "An output of the model, or of a Python step, holds NaN, or nothing but infinities.", Containers.USER_CODE
    )
    REFERENCE_CONSTANT = Kind.FILES(
        "Every output is the same for all samples, so agreement would prove nothing.", Containers.USER_CODE
    )
    APPROVAL_INVALID = Kind.SPEC(
        "spec.selection.approvedRevision names no candidate, or one that failed or was not measured."
    )
    CONVERSION_FAILED = Kind.FILES(
        "The exporter failed or crashed, or the file does not fit the signature.", Containers.USER_CODE
    )
    CONVERSION_UNSUPPORTED = Kind.SPEC(
        "The format cannot hold the model or its tensors' names, or no server runs the Python step.",
        Containers.USER_CODE,
    )
    GAINS_NOTHING = Kind.SPEC(
        "No INT8 graph is both faster than fp32 and close to it, or TensorRT inside ONNX Runtime built no engine.",
        Containers.USER_CODE | Containers.CLIENT,
    )
    PRECISION_MISMATCH = Kind.SPEC(
        "The converted file's data types are not those of the requested precision.",
        Containers.USER_CODE | Containers.CLIENT,
    )
    TENSOR_RT_UNAVAILABLE = Kind.SPEC(
        "The Job's image has no TensorRT, or the Job has no GPU to build for.", Containers.USER_CODE
    )
    FORMAT_NOT_SERVED = Kind.SPEC(
        "The server's release has no backend for the format, or reads no such ONNX operator set or TensorRT engine.",
        Containers.OURS,
    )
    GPU_PRODUCT_MISSING = Kind.SPEC(
        "The candidate, or the comparison of several, needs one GPU product, but none is set or no node has it."
    )
    MODEL_LOAD_FAILED = Kind.SPEC("tritonserver refused the model.", Containers.USER_CODE | Containers.CLIENT)
    SIGNATURE_MISMATCH = Kind.FILES(
        "The server's metadata differs from the signature.", Containers.USER_CODE | Containers.CLIENT
    )
    OUTPUTS_NOT_FINITE = Kind.SPEC(
        "The served outputs hold NaN or infinity where the reference has none.",
        Containers.USER_CODE | Containers.CLIENT,
    )
    OUTPUTS_DIFFER = Kind.FILES(
        "The served outputs are outside the tolerance of the reference.", Containers.USER_CODE | Containers.CLIENT
    )
    INFERENCE_FAILED = Kind.SPEC("The server answered an inference request with an error.", Containers.CLIENT)
    METRIC_FAILED = Kind.FILES(
        "The metrics entrypoint raised an exception, or computed no metric of that name.", Containers.USER_CODE
    )
    THRESHOLD_NOT_MET = Kind.FILES("A metric is outside its threshold.")
    WORSE_THAN_BEFORE = Kind.FILES(
        "A metric is worse than that of an earlier revision, beyond chance and accuracy.regression.maxPercent."
    )
    MEASUREMENT_FAILED = Kind.RETRY("perf_analyzer ended without a measurement.", Containers.CLIENT)
    CONSTRAINTS_NOT_MET = Kind.RETRY("No measurement meets every constraint.")
    NOT_BEST = Kind.DONE("Another candidate's best measurement is better.")
    SAME_GRAPH = Kind.DONE(
        "A newer version of a followed source has the graph of the one before, so the active candidate alone is tried."
    )
    PASSED = Kind.DONE("The candidate passed every gate.")
    ALL_CANDIDATES_FAILED = Kind.SPEC("No candidate was converted, or none passed the gates.")
    UNSCHEDULABLE = Kind.ROOM("No node can run the pod; the message quotes the scheduler.")
    IMAGE_PULL_FAILED = Kind.ANSWERS("The kubelet cannot pull the image.")
    MOUNT_FAILED = Kind.OUTSIDE("A volume of the pod cannot be mounted.")
    SIDECAR_NOT_STARTED = Kind.OUTSIDE(
        "A container that the cluster added to the pod, such as a mesh's proxy, has not started; the others wait."
    )
    CONTAINER_CONFIG_INVALID = Kind.OUTSIDE("The kubelet cannot create the container.")
    EVICTED = Kind.ROOM(
        "The cluster ended the pod; another one is created, unless the kubelet ended three in a row for a lack of disk"
        " or memory."
    )
    NODE_NOT_READY = Kind.ROOM(
        "The pod's node does not answer; or it failed the pod of a Job, which is tried again later."
    )
    CLAIM_LOST = Kind.OUTSIDE("The PersistentVolumeClaim lost its volume.")
    CLAIM_TERMINATING = Kind.NOTICE("The PersistentVolumeClaim is being deleted, and goes with its last pod.")
    RECORDS_UNREADABLE = Kind.NOTICE("Somebody changed the records of the object, or a newer operator wrote them.")
    CLAIM_UNUSABLE = Kind.RETRY(
        "The claim is mounted read-only or for one pod at a time, or its directory belongs to another user.",
        Containers.OURS,
    )
    REPOSITORY_DAMAGED = Kind.RETRY(
        "A revision on the claim is not what was published; it is published anew, and running servers stay.",
        Containers.OURS,
    )
    REPOSITORY_UNKNOWN = Kind.RETRY(
        "The claim's .triton-operator is not this operator's, or holds more.", Containers.OURS
    )
    STORAGE_FULL = Kind.ROOM("No space is left on the claim.", Containers.RUN)
    OUT_OF_MEMORY = Kind.SPEC("A container was killed at its memory limit.", Containers.RUN)
    DEADLINE_EXCEEDED = Kind.SPEC("The Job's pod ran past its activeDeadlineSeconds.")
    CRASHED = Kind.EITHER("The container ended with an error; the message quotes its last lines.", Containers.RUN)
    RESULT_MISSING = Kind.EITHER(
        "The Job left no valid result, or the claim lacks the revision of a server.", Containers.RUN
    )
    INPUT_MISSING = Kind.ROOM(
        "The claim lacks what an earlier Job published there, which is made again.", Containers.OURS
    )
    SERVER_CRASHED = Kind.RETRY(
        "tritonserver ended with an error, or hung as it loaded; the message says which.", Containers.CLIENT
    )
    SERVER_UNREACHABLE = Kind.ANSWERS(
        "tritonserver's name has no address, or a request got no answer although it was sent several times.",
        Containers.CLIENT,
    )
    NOT_PORTABLE = Kind.SPEC(
        "The revision names files that are on its claim or node alone, so that no other server could serve its image.",
        Containers.OURS,
    )
    NOT_ATTESTED = Kind.SPEC("A record that the report of a revision is made of is gone, or the report is too long.")
    SIGNING_KEY_INVALID = Kind.RIGHTS(
        "The Secret with the signing key holds no private ECDSA key of P-256, or not its password.", Containers.OURS
    )
    REGISTRY_ACCESS_DENIED = Kind.RIGHTS(
        "The registry refused the credentials for a push, or asks for some.", Containers.OURS
    )
    REGISTRY_CERTIFICATE_INVALID = Kind.RIGHTS(
        "The certificate of the registry that images are pushed to is not one that the publish Job trusts.",
        Containers.OURS,
    )
    REGISTRY_NOT_FOUND = Kind.RETRY(
        "The registry has no such repository or project, and makes none by a push.", Containers.OURS
    )
    REGISTRY_LIMIT = Kind.RETRY(
        "The registry, or a proxy before it, takes no request as large as a file of the revision.", Containers.OURS
    )
    REGISTRY_INVALID = Kind.RETRY(
        "The registry answers a push with what the OCI distribution specification does not allow, or holds something"
        " else than was pushed.",
        Containers.OURS,
    )
    REGISTRY_BUSY = Kind.ANSWERS(
        "The registry takes no more requests for now; the operator tries again.", Containers.OURS
    )
    REGISTRY_FULL = Kind.ANSWERS(
        "The registry has no room left for the image, on its disks or in a quota; the operator tries again.",
        Containers.OURS,
    )
    REGISTRY_UNREACHABLE = Kind.ANSWERS(
        "The registry that images are pushed to does not answer, or fails; the operator tries again.", Containers.OURS
    )
    PROGRESS_DEADLINE_EXCEEDED = Kind.SPEC("The server was not ready in time.")


_BY_VALUE = {str(reason): reason for reason in Reason}


def known_reason(value: str) -> Reason | None:
    """Return the reason with that value; None: another version has it, or nobody."""
    return _BY_VALUE.get(value)


def of_kinds(*kinds: Kind) -> frozenset[Reason]:
    """Return the reasons of these kinds."""
    return frozenset(reason for reason in Reason if reason.kind in kinds)


def found_by(containers: Containers) -> frozenset[Reason]:
    """Return the failures that one of these containers may end with."""
    return frozenset(reason for reason in Reason if reason.found_by & containers)


FAILURES = found_by(Containers.RUN | Containers.OURS)
"""The failures that a Job may end with."""
