"""``azure://CONTAINER/PREFIX``: Azure Blob Storage; the Secret says of which account."""

from pathlib import Path

from obstore.store import AzureStore

from triton_converters.contract.failure import StageError
from triton_converters.contract.look import LookResult
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import field
from triton_converters.fetch.bucket import Bucket
from triton_converters.fetch.credentials import UnusableError, https_url, identified, known
from triton_converters.fetch.remote import Fetched, Remote

ACCOUNT, KEY, SAS = "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN"
ENDPOINT = "AZURE_STORAGE_ENDPOINT"
IDENTITY = "AZURE_FEDERATED_TOKEN_FILE"
"""Environment variable that the cloud sets in a pod whose ServiceAccount has an identity."""


def fetch(remote: Remote, place: Path) -> Fetched:
    """Download an object or a folder. Raises StageError, such as UnusableError."""
    return _bucket(remote).fetch(place)


def look(remote: Remote) -> LookResult:
    """Return the version of an object or a folder. Raises StageError, such as UnusableError."""
    return _bucket(remote).look()


def _bucket(remote: Remote) -> Bucket:
    if not remote.credentials:
        message = f"name a Secret in {field.of('secretRef')} that has the storage account's name under {ACCOUNT}"
        raise StageError(Reason.SOURCE_ACCESS_DENIED, message)
    secret = known(remote.credentials, ACCOUNT, KEY, SAS, ENDPOINT)
    if ACCOUNT not in secret:
        raise UnusableError(f"lacks the key {ACCOUNT}")
    has_key = KEY in secret or SAS in secret
    return Bucket(
        remote,
        AzureStore,
        account_name=secret[ACCOUNT],
        account_key=secret.get(KEY),
        sas_key=secret.get(SAS),
        endpoint=https_url(secret, ENDPOINT),
        skip_signature=not has_key and not identified(remote.service_account, IDENTITY),
    )
