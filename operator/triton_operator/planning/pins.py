"""Which images an object's Jobs and servers have. Pure.

The images are one set, as one version of the operator ships them: a TensorRT engine runs only on the TensorRT that
built it. An object keeps its set through upgrades of the operator, until an edit after which every model has to be
converted again. Going back to a state that served takes the set of that state, so that its results are found.
"""

from collections.abc import Iterator

from pydantic import ValidationError

from triton_operator.api.deployment import TritonDeployment
from triton_operator.api.status import COMMANDS, Images
from triton_operator.jobs.reference import basis
from triton_operator.observed.history import History
from triton_operator.settings import Settings


def pinned(deployment: TritonDeployment, history: History, settings: Settings) -> Images:
    """The images of the status or the history that were chosen for what the spec asks for, or else the settings'."""
    digest, on_gpu = basis(deployment.spec), deployment.spec.gpu_count > 0
    known = (each for each in (deployment.status.images, *_recorded(history)) if each is not None)
    found = next((each for each in known if each.spec_digest == digest), None)
    return found or Images(
        converter=settings.converter_image,
        converter_tensorflow=settings.converter_tensorflow_image,
        converter_gpu=settings.converter_gpu_image or None if on_gpu else None,
        tf32=False if on_gpu else None,
        commands=COMMANDS,
        server=settings.server_image,
        server_arguments=list(settings.server_arguments),
        spec_digest=digest,
    )


def _recorded(history: History) -> Iterator[Images]:
    """Yield the images of the states that served, newest first; an entry that somebody edited is left out."""
    for state in history.served:
        try:
            yield Images.model_validate(state.images)
        except ValidationError:
            continue
