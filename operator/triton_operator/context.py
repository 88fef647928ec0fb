"""What every stage and builder gets: an object's spec, what was observed of it, and the settings. Pure."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from triton_converters.contract.formats import SOURCE_FORMATS
from triton_operator import names
from triton_operator.active import active_server
from triton_operator.api.model import Model
from triton_operator.api.pod import Pod
from triton_operator.api.quantity import amount
from triton_operator.api.resolved import Resolved
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import Images
from triton_operator.api.triton_deployment import TritonDeployment
from triton_operator.observed.active_record import ActiveRecord
from triton_operator.observed.snapshot import Observed
from triton_operator.settings import Settings


@dataclass(frozen=True)
class Context:
    """One pass over one TritonDeployment."""

    triton_deployment: TritonDeployment
    observed: Observed
    settings: Settings
    now: datetime
    pins: Images
    """The images that the object keeps."""
    resolved: Resolved | None = None
    """What the operator fills in for fields that the spec leaves out; ``spec`` has it already. None: nothing."""
    unbatched: Resolved | None = None
    """What takes the place of ``resolved`` if samples must not share a batch; None: nothing does. A request keeps its
    first dimension then, whatever that counts."""
    spare: Resolved | None = None
    """What takes the place of ``resolved`` if the candidates of an ensemble fail, of which one alone is tried; None:
    nothing does."""

    @property
    def name(self) -> str:
        """Name of the TritonDeployment."""
        return self.triton_deployment.name

    @property
    def namespace(self) -> str:
        """Namespace of the TritonDeployment and of all its children."""
        return self.triton_deployment.namespace

    @property
    def scales(self) -> bool:
        """Whether KEDA and Prometheus are there, by which replicas follow the load."""
        return bool(self.settings.prometheus_address) and self.observed.has_keda

    @property
    def spec(self) -> TritonDeploymentSpec:
        """Spec of the TritonDeployment."""
        return self.triton_deployment.spec

    # Cached, because every container of every Job reads these, and each overlay of settings is validated.

    @cached_property
    def job_pod(self) -> Pod:
        """Settings of the Jobs' pods."""
        return self.spec.job_pod

    @cached_property
    def server_pod(self) -> Pod:
        """Settings of the servers' pods."""
        return self.spec.server_pod

    @cached_property
    def follower_pod(self) -> Pod:
        """Settings of the pods of Jobs that have to run where the servers do."""
        return self.spec.follower_pod

    @property
    def retry_command(self) -> str:
        """What a user types for another try of what failed."""
        return f"kubectl triton retry {self.name} --namespace {self.namespace}"

    @property
    def sought_models(self) -> tuple[Model, ...]:
        """The models whose format the source shows, in the spec's order, whether it was found yet or not."""
        names_with_format = {each.name for each in self.resolved.models if each.format} if self.resolved else set()
        return tuple(each for each in self.spec.models if each.is_sought or each.name in names_with_format)

    @property
    def graph_models(self) -> tuple[Model, ...]:
        """The models whose `maxBatchSize` their graphs show, in the spec's order, found yet or not."""
        models = self.resolved.models if self.resolved else ()
        filled_names = {each.name for each in models if each.max_batch_size is not None}
        return tuple(each for each in self.spec.models if self.spec.follows_graph(each) or each.name in filled_names)

    @property
    def images(self) -> Images:
        """The images in use: the pinned ones, except that a server image in the spec comes first."""
        server = self.spec.serving.image
        return self.pins.model_copy(update={"server": server}) if server else self.pins

    @property
    def own_framework_image(self) -> str:
        """The converter image for the model's framework and device."""
        formats = [SOURCE_FORMATS[model.format] for model in self.spec.models if model.format]
        if any(each.is_tensorflow for each in formats):
            return self.images.converter_tensorflow
        if any(each.library for each in formats):
            return self.settings.converter_trees_image or self.images.converter
        return self.images.converter_gpu or self.images.converter

    @property
    def framework_image(self) -> str:
        """Image of the Jobs that run the model's framework: the spec's, or the converter for that framework."""
        return self.spec.conversion.image or self.own_framework_image

    @property
    def framework_inputs(self) -> list[Any]:
        """What changes, besides the request, what user code computes and publishes: images, device and variables."""
        images = [self.framework_image, self.images.converter]
        return [*images, self.spec.device, *self.job_pod.env]

    @property
    def client_inputs(self) -> list[Any]:
        """What changes, besides the request, the figures that a client measures: its image and its share of the CPU."""
        resources = self.spec.conversion.pod.resources
        cpus = [amount(each.get("cpu")) for each in (resources.requests, resources.limits)]
        return [self.images.converter, [None if each is None else str(each.normalize()) for each in cpus]]

    def metadata(self, name: str, component: str, **labels: str) -> dict[str, Any]:
        """Metadata of a child, which is deleted with the object.

        It has the object's labels, as admission policies ask for, and those annotations that the installation names.
        """
        owner = self.triton_deployment
        prefixes = self.settings.inherited_annotations
        annotations = {key: value for key, value in owner.annotations.items() if key.startswith(prefixes)}
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {**owner.labels, **names.labels(self.name, component), **labels},
            **({"annotations": annotations} if annotations else {}),
            "ownerReferences": [owner.owner_reference],
        }

    @cached_property
    def active_server(self) -> str | None:
        """Name of the active revision's Deployment, which may have been deleted; None: no revision is active.

        Where nothing is to serve, it is the name in the record of what passed last.
        """
        if not self.spec.serving.serves:
            return self._let_through.server if self._let_through is not None else None
        return active_server(self.name, self.triton_deployment.status.serving, self.observed)

    @property
    def served_name(self) -> str:
        """The name under which the active revision serves the model; the spec's if there is none."""
        recorded = self.observed.active_record
        return (
            recorded.model if recorded is not None and recorded.server == self.active_server else self.spec.served_name
        )

    @property
    def _let_through(self) -> ActiveRecord | None:
        """The record of what passed last while nothing was to serve; None: nothing has."""
        record = self.observed.active_record
        return record if record is not None and not record.has_server else None

    @property
    def active_revision(self) -> str:
        """Key of the active revision; empty: there is none."""
        if not self.spec.serving.serves:
            return self._let_through.revision if self._let_through is not None else ""
        active = self.triton_deployment.status.active
        view = self.observed.servers.get(self.active_server or "")
        if view is not None:
            return view.revision_key
        return active.revision if active is not None and self.active_server is not None else ""

    @property
    def claim_name(self) -> str:
        """Name of the repository claim."""
        return self.triton_deployment.claim_name
