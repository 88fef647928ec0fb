"""What a Job's pod answered: its result, or the failure that its stage reported. Pure."""

from dataclasses import dataclass, replace

from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.envelope import Outcome, read_again
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ProfileResult, SearchResult
from triton_operator.observed.ending import ending_trouble
from triton_operator.observed.gpu import NO_GPU, NodeGpu
from triton_operator.observed.pod import RUN, End, PodView
from triton_operator.observed.trouble import Trouble


@dataclass(frozen=True)
class Record:
    """A Job's stored result, and when it was made."""

    outcome: Outcome
    text: str
    """The termination message, unchanged."""
    finished_at: str
    """When the Job finished, in RFC 3339, UTC."""
    image_id: str = ""
    """ID of the image that the Job's server ran, or the reference's framework, as the kubelet reported it; empty: not
    reported, or neither."""
    gpu: NodeGpu = NO_GPU
    """What the node of the Job's server says of its GPU."""
    node: str = ""
    """Name of the node of the pod that left it; empty: not known, as of what the ConfigMap holds."""

    @property
    def result(self) -> Document | None:
        """The result, with the GPU that its figures are of: the Job itself knows only what the spec asks for."""
        result = self.outcome.result
        if self.gpu == NO_GPU or not isinstance(result, ProfileResult | SearchResult):
            return result
        where = result.environment
        product = self.gpu.product or where.gpu_product
        return replace(result, environment=replace(where, gpu_product=product, gpu_driver=self.gpu.driver))


def record_of(pod: PodView, stage: str, key: str) -> Record | None:
    """Return the result that the Job's own container left; None if it left none that can be read."""
    main = pod.main(stage)
    if main is None or main.end is None or main.end.exit_code != 0:
        return None
    outcome = _outcome(main.end, stage, key)
    if outcome is None or outcome.result is None:
        return None
    return Record(outcome, main.end.message, main.end.finished_at, image_id(pod, stage), node=pod.node or "")


def failure_of(pod: PodView, stage: str, key: str) -> Trouble | None:
    """Return how the Job's own container failed, or one before it; None if none did or the cluster ended the pod.

    What `run` leaves is judged by the container after it: a message in `run` itself is the user code's.
    """
    if pod.is_disrupted:
        return None
    for container in pod.containers_in_turn(stage):
        end = container.end
        if end is not None and end.exit_code != 0:
            reported = _reported_failure(end, stage, key) if container.name != RUN else None
            return reported or ending_trouble(pod, container.name, end, Reason.CRASHED)
    return None


def is_cut(pod: PodView, stage: str) -> bool:
    """Whether the Job's own container succeeded and the kubelet cut its answer."""
    main = pod.main(stage)
    return main is not None and main.end is not None and main.end.exit_code == 0 and pod.may_have_cut(main.end)


def image_id(pod: PodView, stage: str) -> str:
    """Return `Record.image_id` of an answer that the pod left."""
    return pod.framework_image_id if stage == "reference" else pod.server_image_id


def _reported_failure(end: End, stage: str, key: str) -> Trouble | None:
    """Return the failure that the stage itself reported."""
    outcome = _outcome(end, stage, key)
    return Trouble(outcome.reason, outcome.message) if outcome is not None and outcome.reason is not None else None


def _outcome(end: End, stage: str, key: str) -> Outcome | None:
    try:
        outcome = read_again(end.message)
    except DocumentError:
        return None
    return outcome if (outcome.stage, outcome.key) == (stage, key) else None
