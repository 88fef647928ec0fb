"""``https://HOST/PATH/FILE``: a single file, with basic authentication or a bearer token."""

from pathlib import Path

from urllib3.util import make_headers

from triton_converters.contract.uris import Uri
from triton_converters.fetch.credentials import Credentials, choose
from triton_converters.fetch.http_file import download


def fetch(uri: Uri, place: Path, credentials: Credentials) -> str:
    """Download the file and return its entity tag. Raises StageError."""
    name = uri.path.rpartition("/")[2]
    return download(f"https://{uri.host}/{uri.path}", place, place / "files" / name, _header(credentials))


def _header(credentials: Credentials) -> dict[str, str]:
    found = choose(credentials, ("token",), ("username", "password"))
    if len(found) == 1:
        return {"Authorization": f"Bearer {found[0]}"}
    if len(found) == 2:
        return make_headers(basic_auth=":".join(found))
    return {}
