"""What a Python step's file shows of what it needs, without running it. Pure.

What would certainly fail is a fault. What only may fail is left for the author to judge: a name says little about what
the code does with it.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from triton_converters.contract.text import quoted
from triton_plugin.python_files import Modules, imported_packages, used_names
from triton_plugin.triton_repository.files import ModelFiles
from triton_plugin.triton_repository.told import Told, names

CLASS = "TritonPythonModel"
SERVERS = frozenset({"numpy", "triton_python_backend_utils", "c_python_backend_utils"})
"""What a step imports from the server."""
GPU_PACKAGES = frozenset({"cupy", "pycuda", "cudf", "cuml", "tensorrt", "nvidia"})
"""Packages that do nothing without a GPU."""
DOWNLOADS = ("from_pretrained", "hf_hub_download", "snapshot_download", "urlretrieve", "urlopen")
"""Functions that read from the network, if they are not given files that lie there."""
SYSTEM = frozenset({"dev", "etc", "proc", "sys", "tmp", "usr", "bin", "var"})
"""Folders of every system."""


def judge(model: ModelFiles, file: str, modules: Modules, told: Told) -> str:
    """Tell what is known of the file at ``file`` below the source, and of the files next to it that it imports.

    Returns the path of the requirements file with the packages that it needs; empty: it needs none, or there is none.
    """
    if file not in modules:
        told.faults.append((model.name, f"{quoted(file)} is missing, or no Python that can be read: add or correct it"))
        return ""
    own = _imported(file, modules)
    used = frozenset(name for each in own for name in used_names(modules[each]))
    if CLASS not in used and not any(name == CLASS for name, _ in modules[file].definitions):
        told.faults.append((model.name, f"{quoted(file)} defines no class {CLASS}: add it"))
    if "InferenceRequest" in used and used & {"exec", "async_exec"}:
        message = "it asks another model by itself (InferenceRequest.exec): connect the models by steps of an ensemble"
        told.faults.append((model.name, message))
    if "get_response_sender" in used:
        message = "it sends responses by itself (get_response_sender): return one response for each request"
        told.faults.append((model.name, message))
    told.doubts += ((model.name, each) for each in _doubts(own, used, modules))
    return _packages(model, file, modules, told)


def _packages(model: ModelFiles, file: str, modules: Modules, told: Told) -> str:
    """Tell what the step imports that neither the server nor its folder has; return as ``judge`` does."""
    folder = PurePosixPath(file).parent
    local = {PurePosixPath(each).relative_to(folder).parts[0].removesuffix(".py") for each in _below(folder, modules)}
    packages = imported_packages(modules, file) - SERVERS - local - sys.stdlib_module_names
    if gpu := sorted(packages & GPU_PACKAGES):
        message = f"it imports {names(gpu)}, but a step runs on the CPU: write it with NumPy"
        told.faults.append((model.name, message))
    needed = sorted(packages - GPU_PACKAGES)
    outside = [each for each in needed if any(PurePosixPath(path).stem == each for path in modules)]
    if outside:
        message = f"it imports {names(outside)} from outside its folder: copy it into {quoted(str(folder))}"
        told.missing.append((model.name, message))
    foreign = [each for each in needed if each not in outside]
    if foreign and not model.requirements:
        message = f"it imports {names(foreign)}: list the packages in {quoted(f'{model.path}/requirements.txt')}"
        told.missing.append((model.name, message))
    # A file of the whole folder may be that of the other code alone, whose packages no server needs.
    return model.requirements if foreign else ""


def _doubts(own: Iterable[str], used: frozenset[str], modules: Modules) -> Iterator[str]:
    if called := [each for each in DOWNLOADS if each in used]:
        yield (
            f"it calls {called[0]}: a server reaches nothing, so the files have to lie in the step's folder, named from"
            " Path(__file__).parent"
        )
    places = sorted(place for each in own for place in modules[each].places if _is_elsewhere(place))
    if places:
        yield (
            f"it names {names(places)}: on a server the step's files lie elsewhere; name them from"
            " Path(__file__).parent"
        )
    if "cuda" in used:
        yield "it names cuda: a step runs on the CPU"


def _is_elsewhere(place: str) -> bool:
    """Whether an absolute path is that of a file in somebody's container."""
    return place.strip("/").partition("/")[0] not in SYSTEM


def _imported(file: str, modules: Modules) -> list[str]:
    """Return the file, and those of its folder that it may import."""
    return [file, *(each for each in _below(PurePosixPath(file).parent, modules) if each != file)]


def _below(folder: PurePosixPath, modules: Modules) -> Iterator[str]:
    return (each for each in modules if PurePosixPath(each).is_relative_to(folder))
