"""``https://HOST/PATH/FILE``: a single file, with basic authentication or a bearer token."""

from pathlib import Path

from urllib3.util import make_headers

from triton_converters.fetch.credentials import Credentials, choose
from triton_converters.fetch.folder import single
from triton_converters.fetch.http_file import download
from triton_converters.fetch.remote import Fetched, Remote


def fetch(remote: Remote, place: Path) -> Fetched:
    """Download the file; its version is its entity tag. Raises StageError."""
    uri = remote.uri
    target = single(place, remote)
    header = _header(remote.credentials)
    tag = download(f"https://{uri.host}/{uri.path}", place, target, lambda: header)
    return Fetched(tag, single=True, files=frozenset({target.name}))


def _header(credentials: Credentials) -> dict[str, str]:
    found = choose(credentials, ("token",), ("username", "password"))
    if len(found) == 1:
        return {"Authorization": f"Bearer {found[0]}"}
    if len(found) == 2:
        return make_headers(basic_auth=":".join(found))
    return {}
