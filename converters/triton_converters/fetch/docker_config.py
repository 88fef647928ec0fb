"""The account of a registry, from a Secret that ``kubectl create secret docker-registry`` makes."""

import base64
import json
import re

from triton_converters.fetch.credentials import Credentials, UnusableError, choose

KEY = ".dockerconfigjson"


def account(credentials: Credentials, host: str, repository: str) -> str:
    """Return the Authorization header for the repository's registry; empty: the spec names no Secret.

    Like the kubelet, it prefers the entry with the longest path. Raises UnusableError.
    """
    # A file that somebody wrote by hand has line breaks, which mean nothing in JSON.
    found = choose({name: " ".join(value.split()) for name, value in credentials.items()}, (KEY,))
    if not found:
        return ""
    try:
        entries = {_place(name): entry for name, entry in json.loads(found[0])["auths"].items()}
        place = max((each for each in entries if f"{host}/{repository}/".startswith(f"{each}/")), key=len, default=None)
        pair = _pair(entries[place]) if place is not None else b""
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise UnusableError(f"has no Docker configuration with registries under {KEY}") from None
    if not pair:
        raise UnusableError(f"has no username and password for {host} under {KEY}")
    return f"Basic {base64.b64encode(pair).decode()}"


def _place(name: str) -> str:
    """Return a registry's name without what older programs write around it: a scheme and the API's version."""
    return re.sub(r"^https?://|/(v[12]/?)?$", "", name)


def _pair(entry: dict[str, str]) -> bytes:
    """Return the user's name and password, with a colon between; empty: the entry lacks one of them."""
    pair = base64.b64decode(entry.get("auth", ""), validate=True)
    pair = pair or f"{entry.get('username', '')}:{entry.get('password', '')}".encode()
    name, colon, password = pair.partition(b":")
    return pair if name and colon and password else b""
