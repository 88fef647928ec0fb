"""The Jobs that install the Python packages that requirements files of the source name.

One installs those that the framework's image lacks. Another one, for each file of a Python step, installs what the step
imports inside the server.
"""

from collections.abc import Iterator

from triton_converters.contract.conversion_requests import PackagesRequest, RequirementsFile
from triton_converters.contract.results import PackagesResult, SourceResult
from triton_operator import names
from triton_operator.api.model import Model
from triton_operator.context import Context
from triton_operator.resources.volumes import secret_volume
from triton_operator.resources.work import Pip, Work

PLACE = ("source", "path", "others")
"""The fields of a request that say where the files lie: the same files ask for the same packages."""

PackagesWork = Work[PackagesRequest, PackagesResult]


def packages_key(context: Context, source: SourceResult) -> str:
    """Return the key of the packages of the framework's image; empty: the spec names no requirements file for it."""
    work = packages_work(context, source)
    return work.key if work is not None else ""


def step_packages_key(context: Context, source: SourceResult, model: Model) -> str:
    """Return the key of the packages that a Python step imports inside the server; empty: the model names none."""
    return _step_work(context, source, model.requirements).key if model.requirements else ""


def packages_works(context: Context, source: SourceResult) -> Iterator[tuple[str, PackagesWork]]:
    """Yield the work of each Job, and which packages it installs in words; empty: those of the framework's image."""
    work = packages_work(context, source)
    if work is not None:
        yield "", work
    works: dict[str, tuple[str, PackagesWork]] = {}
    for path in context.spec.step_requirements:
        step = _step_work(context, source, path)
        # Files with the same content have one result.
        works.setdefault(step.key, (f" of {path} for the server", step))
    yield from works.values()


def packages_work(context: Context, source: SourceResult) -> PackagesWork | None:
    """Return the work of the Job for the framework's image; None: the spec names no requirements file for it.

    The reference is one process, so the files of all its code are resolved together.
    """
    if not context.spec.requirements:
        return None
    first, *others = (_file(context, source, path) for path in context.spec.requirements)
    request = PackagesRequest("", source.digest, first.path, first.sha256, others=tuple(others))
    return _work(context, request, context.own_framework_image)


def _step_work(context: Context, source: SourceResult, path: str) -> PackagesWork:
    """Return the work of the Job for the server's image. Each step is a process of its own, with its own packages."""
    file = _file(context, source, path)
    request = PackagesRequest("", source.digest, file.path, file.sha256, served=True)
    # Never the image of spec.serving.image, which is the user's: pip reaches the network.
    return _work(context, request, context.pins.server)


def _file(context: Context, source: SourceResult, path: str) -> RequirementsFile:
    """Return a file with its digest, which is empty if the record of the source does not tell it."""
    if path == context.spec.conversion.requirements:
        return RequirementsFile(path, source.requirements)
    digests = dict(zip(context.spec.other_requirements, source.step_requirements, strict=False))
    return RequirementsFile(path, digests.get(path, ""))


def _work(context: Context, request: PackagesRequest, image: str) -> PackagesWork:
    """Return the work. Its key covers the files, the image, and the Secret of its namespace that names an index.

    It does not cover the installation's index: another mirror of the same packages converts nothing again.

    pip runs in the image that will import the packages, because that decides which wheels fit and what is missing. The
    programs are the installation's, pip among them: those of an image that the object is pinned to may be older.
    """
    conversion = context.spec.conversion
    secret = conversion.index_secret_ref
    digests = [each.sha256 for each in request.others]
    index = f"{context.namespace}/{secret.name}" if secret else ""
    request = names.request_with_key("packages", request, image, index, *digests, without=PLACE)
    volumes, mounts = secret_volume(secret.name) if secret else ((), ())
    return Work(
        stage="packages",
        request=request,
        deadline_seconds=conversion.active_deadline_seconds,
        shape=Pip(image, volumes, mounts, context.settings.converter_image, request.served),
    )
