"""The URIs by which a spec names files; shared by the Jobs and the operator, standard library only.

A URI holds no query, no fragment and no credentials: it stands in the spec, in conditions and in logs.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
"""A file's or folder's name."""
UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f\\]")
"""What the name of a published file must not hold."""
_NAME = r"[a-z0-9][-.a-z0-9]*"
_HOST = r"[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?(:[0-9]{1,5})?"
_FOLDER = r"[A-Za-z0-9_~+,=:%-][A-Za-z0-9._~+,=:%-]*"
_REGISTERED = r"[A-Za-z0-9_~+,=%-][A-Za-z0-9._~+,=%-]*"
_OBJECT = r"[A-Za-z0-9_~+,=:-][A-Za-z0-9._~+,=:-]*"
_IN_BUCKET = rf"[a-z0-9][-._a-z0-9]*(/{_OBJECT})*/?"
_IMAGE = r"[a-z0-9]+(([.]|__?|-+)[a-z0-9]+)*"
_TAG = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
PUBLISHED = rf"oci://{_HOST}(/{_IMAGE})+(:{_TAG})?"
"""Regular expression that all of a URI matches to which an image is pushed: as a source's, but without a digest."""


@dataclass(frozen=True)
class Scheme:
    """What a URI of a scheme names."""

    shape: str
    """What such a URI looks like, in words."""
    pattern: str
    """Regular expression that all of it matches."""
    is_remote: bool = True
    """Whether the source Job downloads the files, by the module of the scheme's name in ``fetch``; if not, they are
    mounted into its pod."""
    may_be_file: bool = False
    """Whether a URI may name a single file, by the last name of its path."""
    has_revisions: bool = False
    """Whether there are branches, tags or commits, or versions of a registry, to choose from."""
    needs_revision: bool = False
    """Whether one of them must be named."""
    knows_accounts: bool = False
    """Whether the servers know a pod by its ServiceAccount."""


SCHEMES: Mapping[str, Scheme] = {
    "pvc": Scheme("pvc://CLAIM/PATH", rf"pvc://{_NAME}(/{SEGMENT})*/?", is_remote=False),
    "configmap": Scheme("configmap://NAME", rf"configmap://{_NAME}", is_remote=False),
    "https": Scheme("https://HOST/PATH/FILE", rf"https://{_HOST}(/{_FOLDER})*/{SEGMENT}", may_be_file=True),
    "hf": Scheme("hf://OWNER/REPOSITORY", rf"hf://{SEGMENT}/{SEGMENT}", has_revisions=True),
    "mlflow": Scheme(
        "mlflow://SERVER/NAME",
        rf"mlflow://{_HOST}(/{_FOLDER})*/{_REGISTERED}",
        has_revisions=True,
        needs_revision=True,
    ),
    "s3": Scheme("s3://BUCKET/PREFIX", rf"s3://{_IN_BUCKET}", may_be_file=True, knows_accounts=True),
    "gs": Scheme("gs://BUCKET/PREFIX", rf"gs://{_IN_BUCKET}", may_be_file=True, knows_accounts=True),
    "azure": Scheme("azure://CONTAINER/PREFIX", rf"azure://{_IN_BUCKET}", may_be_file=True, knows_accounts=True),
    "oci": Scheme(
        "oci://REGISTRY/REPOSITORY:TAG",
        rf"oci://{_HOST}(/{_IMAGE})+(:{_TAG}|@sha256:[0-9a-f]{{64}})",
    ),
}
"""The schemes by their names."""
FORBIDDEN = r"[?#]|//[^/]*@"
"""What begins a query or a fragment, and credentials before a host; nothing of it matches any scheme's pattern."""


@dataclass(frozen=True)
class Uri:
    """The parts of a URI."""

    scheme: str
    host: str
    """The claim, the ConfigMap, the host with its port, the repository's owner, or the bucket."""
    path: str
    """The path without slashes at its ends; may be empty. That of ``oci`` ends with the tag or the digest, that of
    ``mlflow`` with the model's name, which may be percent-encoded."""

    @property
    def is_remote(self) -> bool:
        """Whether the source Job downloads the files."""
        return SCHEMES[self.scheme].is_remote


def split(text: str) -> Uri:
    """Return the parts of a URI; raises ValueError for one that no scheme allows, without quoting it."""
    scheme, _, rest = text.partition("://")
    if re.search(FORBIDDEN, text):
        raise ValueError(
            "the URI has a query, a fragment or credentials; remove them, put credentials into a Secret, and name it in"
            " secretRef"
        )
    if scheme not in SCHEMES or not re.fullmatch(SCHEMES[scheme].pattern, text):
        raise ValueError(f"the URI must be one of {shapes()}")
    host, _, path = rest.partition("/")
    return Uri(scheme, host, path.strip("/"))


def shapes(chosen: Callable[[Scheme], bool] = lambda _: True) -> str:
    """Return in words what URIs look like."""
    return ", ".join(scheme.shape for scheme in SCHEMES.values() if chosen(scheme))
