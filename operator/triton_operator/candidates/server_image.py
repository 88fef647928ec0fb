"""What a tritonserver image can do, as far as its name tells: before anything is converted for it. Pure."""

import re

from triton_converters.contract.formats import FORMATS, SOURCES, unserved

CPU_IMAGE = "tritonserver-cpu"
"""Last part of our CPU image's repository."""
CPU_BACKENDS = ("onnxruntime", "pytorch", "hps")
"""All that image has (images/tritonserver-cpu/backends)."""
CLIENT_SHARED_MEMORY_FLAG = "--allow-client-shm=true"
_CLIENT_SHARED_MEMORY_OFF = "26.04"
"""Since this release (server 2.68) clients' shared memory is refused without the flag; older servers do not know it."""
_RELEASE = re.compile(r":(\d\d\.\d\d)(?:-[a-z0-9]+)*-py3(?:[-@]|$)")


def release(image: str) -> str:
    """YY.MM of an image whose tag has NVIDIA's form (26.03-py3, 25.02-tf2-python-py3); empty where it has not."""
    found = _RELEASE.search(image.rpartition("/")[2])
    return found.group(1) if found else ""


def refusal(image: str, source: str, format_name: str) -> str | None:
    """Why a server of that image cannot serve a format, and what can be done; None: nothing is known against it.

    ``source``: the format that the model comes in; the advice names what it converts into.
    """
    backend = FORMATS[format_name].backend
    if is_cpu_image(image) and backend not in CPU_BACKENDS:
        served = [name for name in SOURCES[source].converters if FORMATS[name].backend in CPU_BACKENDS]
        return (
            f"image {image} has no backend {backend}, which format {format_name} needs; use format"
            f" {', '.join(served)}, or one of NVIDIA's images in spec.serving.image"
        )
    message = unserved(format_name, release(image))
    return f"image {image}: {message}" if message else None


def is_cpu_image(image: str) -> bool:
    """Whether it is our CPU image, from whatever registry."""
    return re.split("[:@]", image.rpartition("/")[2])[0] == CPU_IMAGE


def wants_shared_memory_flag(image: str) -> bool:
    """Whether a server of that image serves clients through shared memory only when it is told to."""
    return release(image) >= _CLIENT_SHARED_MEMORY_OFF
