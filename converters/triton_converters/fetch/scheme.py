"""The scheme of a request: its URI, its module in this package, and what that is asked."""

import importlib
import os
from types import ModuleType

from triton_converters.contract import uris
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.uris import Uri
from triton_converters.fetch import credentials, field
from triton_converters.fetch.remote import Remote

SERVICE_ACCOUNT = "SOURCE_SERVICE_ACCOUNT"
"""Environment variable with the name of the ServiceAccount by which a cloud knows the pod."""


def uri_of(request: SourceRequest) -> Uri:
    """Return the parts of the URI; from then on messages name the request's field. Raises StageError(SourceInvalid)."""
    field.FIELD.set(request.field)
    try:
        return uris.split(request.uri)
    except ValueError as error:
        raise StageError(Reason.SOURCE_INVALID, f"{field.of('uri')}: {error}") from error


def of(request: SourceRequest, uri: Uri) -> tuple[ModuleType, Remote]:
    """Return the module of a remote URI's scheme, and what it is asked, with the Secret. Raises UnusableError."""
    module = importlib.import_module(f"triton_converters.fetch.{uri.scheme}")
    return module, Remote(uri, credentials.read(), request, os.environ.get(SERVICE_ACCOUNT, ""))
