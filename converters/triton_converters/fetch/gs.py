"""``gs://BUCKET/PREFIX``: Google Cloud Storage."""

from pathlib import Path

from obstore.store import GCSStore

from triton_converters.contract.look import LookResult
from triton_converters.fetch.bucket import Bucket
from triton_converters.fetch.credentials import choose
from triton_converters.fetch.remote import Fetched, Remote

KEY = "GOOGLE_APPLICATION_CREDENTIALS_JSON"


def fetch(remote: Remote, place: Path) -> Fetched:
    """Download an object or a folder. Raises StageError."""
    return _bucket(remote).fetch(place)


def look(remote: Remote) -> LookResult:
    """Return the version of an object or a folder. Raises StageError."""
    return _bucket(remote).look()


def _bucket(remote: Remote) -> Bucket:
    # Google's files have line breaks, which mean nothing in JSON.
    secret = {name: " ".join(value.split()) for name, value in remote.credentials.items()}
    account = next(iter(choose(secret, (KEY,))), None)
    # Without a key the library asks the metadata server, which knows the pod's ServiceAccount.
    skipped = account is None and not remote.service_account
    return Bucket(remote, GCSStore, service_account_key=account, skip_signature=skipped)
