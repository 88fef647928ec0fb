"""The Job that installs the Python packages that spec.conversion.requirements names."""

from triton_converters.contract.conversion_requests import PackagesRequest
from triton_converters.contract.results import PackagesResult, SourceResult
from triton_operator import names
from triton_operator.context import Context
from triton_operator.resources.pod import secret_volume
from triton_operator.resources.work import Pip, Work

PLACE = ("source", "path")
"""The fields of a request that say where the file lies: the same file asks for the same packages."""


def packages_key(context: Context, source: SourceResult) -> str:
    """Return the key of the installed packages; empty: the spec names no requirements file."""
    return packages_work(context, source).key if context.spec.conversion.requirements else ""


def packages_work(context: Context, source: SourceResult) -> Work[PackagesRequest, PackagesResult]:
    """Return the Job's work. Its key covers the file, the image, and the Secret that names an index.

    It does not cover the installation's index: another mirror of the same packages converts nothing again.

    pip runs in the image that will import the packages, because that decides which wheels fit and what is missing. The
    programs are the installation's, pip among them: those of an image that the object is pinned to may be older.
    """
    conversion, image = context.spec.conversion, context.own_framework_image
    secret = conversion.index_secret_ref
    request = PackagesRequest(key="", source=source.digest, path=conversion.requirements, sha256=source.requirements)
    request = names.request_with_key("packages", request, image, secret.name if secret else "", without=PLACE)
    pairs = [secret_volume(secret.name)] if secret else []
    return Work(
        stage="packages",
        request=request,
        deadline_seconds=conversion.active_deadline_seconds,
        shape=Pip(
            tuple(volume for volume, _ in pairs),
            tuple(mount for _, mount in pairs),
            context.settings.converter_image,
        ),
    )
