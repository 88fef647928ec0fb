"""What a tritonserver image can serve, by its name alone, before anything is converted for it. Pure."""

import re

from triton_converters.contract.formats import FORMATS, HPS, SOURCE_FORMATS, unserved

CPU_IMAGE = "tritonserver-cpu"
"""The last part of the repository of this project's CPU image."""
CPU_BACKENDS = ("onnxruntime", "pytorch", "hps", "python")
"""All backends of that image (images/tritonserver-cpu/backends)."""
NVIDIA_IMAGE = "nvcr.io/nvidia/tritonserver"
"""The repository of NVIDIA's image, whose tags are releases."""
CLIENT_SHARED_MEMORY_FLAG = "--allow-client-shm=true"
"""Lets clients hand over tensors in shared memory, as the profile's client does."""
_CLIENT_SHARED_MEMORY_OFF = "26.04"
"""From this release (server 2.68) on, shared memory of clients needs the flag; older servers do not know the flag."""
_PYTHON_3_12 = "24.11"
"""From this release on, NVIDIA's images have Python 3.12; those of the years before have 3.10."""
_TAG = re.compile(r":[^/]*$")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_RELEASE = re.compile(r":(\d\d\.\d\d)(?:-[a-z0-9]+)*-py3(?:[-@]|$)")


def image_by_digest(image: str, image_id: str) -> str:
    """Return the image by the digest that the kubelet reported as its ID, or by its name if that has none.

    An image that was imported has no such digest. If the same content is in several repositories, a runtime may report
    the digest of another one, from which this image's name cannot be pulled.
    """
    repository, _, digest = image_id.removeprefix("docker-pullable://").partition("@")
    own_repository = _TAG.sub("", image)
    is_same_repository = (
        "@" not in image and _DIGEST.fullmatch(digest) and _canonical(repository) == _canonical(own_repository)
    )
    return f"{own_repository}@{digest}" if is_same_repository else image


def release(image: str) -> str:
    """Return the release as YY.MM; empty: the image's tag has not NVIDIA's form (26.03-py3, 25.02-tf2-python-py3)."""
    match = _RELEASE.search(image.rpartition("/")[2])
    return match.group(1) if match else ""


def refusal(image: str, source: str, format_name: str) -> str | None:
    """Return why a server of the image cannot serve a format, and what to do; None: nothing is known against it.

    ``source`` is the format of the model's source; the advice names formats that it converts into.
    """
    backend = FORMATS[format_name].backend
    if is_cpu_image(image) and backend not in CPU_BACKENDS:
        served_formats = [name for name in SOURCE_FORMATS[source].converters if FORMATS[name].backend in CPU_BACKENDS]
        return (
            f"image {image} has no backend {backend}, which format {format_name} needs; use format"
            f" {', '.join(served_formats)}, or one of NVIDIA's images in spec.serving.image"
        )
    if backend == HPS and _TAG.sub("", image.partition("@")[0]) == NVIDIA_IMAGE:
        return (
            f"image {image} has no backend {HPS}, which format {format_name} needs; build an image that has it, as"
            " docs/ensembles.md says, and name it in spec.serving.image"
        )
    message = unserved(format_name, release(image))
    return f"image {image}: {message}" if message else None


def requirements_refusal(image: str) -> str | None:
    """Return why pip cannot install packages for the Python of the image; None: nothing is known against it."""
    if not "" < release(image) < _PYTHON_3_12:
        return None
    return (
        f"image {image} has Python 3.10, and the packages of a model's requirements are installed by Python 3.11 or"
        f" later; ask the administrator for release {_PYTHON_3_12} or later in the Helm value images.server, or remove"
        " requirements and put Python modules into the folder of the step's file"
    )


def is_cpu_image(image: str) -> bool:
    """Whether an image is this project's CPU image, from any registry."""
    return re.split("[:@]", image.rpartition("/")[2])[0] == CPU_IMAGE


def wants_shared_memory_flag(image: str) -> bool:
    """Whether a server of the image needs the flag to serve clients through shared memory."""
    return release(image) >= _CLIENT_SHARED_MEMORY_OFF


def _canonical(repository: str) -> str:
    """Return the repository with the registry and the folder that Docker's short names leave out."""
    first, slash, _ = repository.partition("/")
    if not slash:
        return f"docker.io/library/{repository}"
    is_registry = "." in first or ":" in first or first == "localhost"
    return repository if is_registry else f"docker.io/{repository}"
