"""Which images an object's Jobs and servers have. Pure.

The images are one set, as one version of the operator ships them: a TensorRT engine runs only on the TensorRT that
built it. An object keeps its set through upgrades of the operator, until an edit after which every model has to be
converted again, or until somebody asks for the set that the installation has now. Going back to a state that served
takes the set of that state, so that its results are found.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from pydantic import ValidationError

from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import COMMANDS_VERSION, Images
from triton_operator.api.triton_deployment import TritonDeployment
from triton_operator.context import Context
from triton_operator.jobs.reference import basis
from triton_operator.observed.history import History, State
from triton_operator.settings import Settings


def pinned_images(triton_deployment: TritonDeployment, history: History, settings: Settings) -> Images:
    """The images of the status or the history that were chosen for what the spec asks for, or else the settings'.

    Those that were chosen before somebody asked for others do not count. Neither do those that the installation no
    longer allows: the history is read from a ConfigMap that people of the namespace may edit.
    """
    digest = basis(triton_deployment.spec)
    request = triton_deployment.update_images
    earlier = filter(None, (triton_deployment.status.images, *_recorded_images(history.served)))
    matching = (
        each
        for each in earlier
        if each.spec_digest == digest and request in ("", each.request_digest) and _are_kept(each, settings)
    )
    installed = _installation_images(triton_deployment.spec, settings)
    return next(matching, None) or installed.model_copy(update={"spec_digest": digest, "request_digest": request})


def newer_images(context: Context) -> Images | None:
    """The installation's images, if what serves has others, or the next revision would have; None: neither."""
    spec, active = context.spec, context.active_server
    installed = _installation_images(spec, context.settings)
    served = context.observed.history.served
    active_states = (each for each in served if each.revision and each.revision.server == active)
    images_in_use = (context.pins, *islice(_recorded_images(active_states), 1))
    return installed if any(differing_fields(each, installed, spec.serving.image) for each in images_in_use) else None


def differing_fields(own_images: Images, installed: Images, spec_server: str | None) -> list[str]:
    """Names of the fields that differ, as the status has them. ``spec_server``: the spec's server image, if any."""
    ignored = {"spec_digest", "request_digest"} | ({"server"} if spec_server else set())
    own_values, installed_values = (each.model_dump(by_alias=True, exclude=ignored) for each in (own_images, installed))
    return [name for name, value in installed_values.items() if value != own_values[name]]


def _are_kept(images: Images, settings: Settings) -> bool:
    """Whether the installation still lets all of these images run."""
    every = (images.converter, images.converter_tensorflow, images.converter_gpu, images.server)
    return all(settings.keeps_image(each) for each in every if each)


def _installation_images(spec: TritonDeploymentSpec, settings: Settings) -> Images:
    """The set that the installation has for such an object."""
    return Images(
        converter=settings.converter_image,
        converter_tensorflow=settings.converter_tensorflow_image,
        converter_gpu=settings.converter_gpu_image or None if spec.gpu_count > 0 else None,
        commands_version=COMMANDS_VERSION,
        server=settings.server_image,
        server_arguments=list(settings.server_arguments),
    )


def _recorded_images(states: Iterable[State]) -> Iterator[Images]:
    """Yield the images of states that served; an entry that somebody edited is left out."""
    for state in states:
        try:
            yield Images.model_validate(state.images)
        except ValidationError:
            continue
