"""``s3://BUCKET/PREFIX``: Amazon S3, or another server with its API."""

from pathlib import Path

from obstore.store import S3Store

from triton_converters.contract.look import LookResult
from triton_converters.fetch.bucket import Bucket
from triton_converters.fetch.credentials import UnusableError, https_url, identified, known
from triton_converters.fetch.remote import Fetched, Remote

KEY, SECRET, TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
REGION, ENDPOINT = "AWS_REGION", "AWS_ENDPOINT_URL"
KEYS = (KEY, SECRET, TOKEN, REGION, ENDPOINT)
"""The keys of a Secret."""
IDENTITY = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
"""Environment variables that the cloud sets in a pod whose ServiceAccount has a role."""
USUAL_REGION = "us-east-1"


def fetch(remote: Remote, place: Path) -> Fetched:
    """Download an object or a folder. Raises StageError, such as UnusableError."""
    return _bucket(remote).fetch(place)


def look(remote: Remote) -> LookResult:
    """Return the version of an object or a folder. Raises StageError, such as UnusableError."""
    return _bucket(remote).look()


def _bucket(remote: Remote) -> Bucket:
    secret = known(remote.credentials, *KEYS)
    if (KEY in secret) != (SECRET in secret):
        raise UnusableError(f"has only one of {KEY} and {SECRET}")
    known_by_account = KEY not in secret and identified(remote.service_account, *IDENTITY)
    return Bucket(
        remote,
        S3Store,
        region=secret.get(REGION, USUAL_REGION),
        access_key_id=secret.get(KEY),
        secret_access_key=secret.get(SECRET),
        session_token=secret.get(TOKEN),
        endpoint=https_url(secret, ENDPOINT),
        skip_signature=KEY not in secret and not known_by_account,
    )
