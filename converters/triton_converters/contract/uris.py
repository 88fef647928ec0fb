"""The URIs by which a spec names files; shared by the Jobs and the operator, standard library only.

A URI holds no query, no fragment and no credentials: it stands in the spec, in conditions and in logs.
"""

import re
from dataclasses import dataclass

SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
"""A file's or folder's name."""
UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f\\]")
"""What the name of a published file must not hold."""
_NAME = r"[a-z0-9][-.a-z0-9]*"
_HOST = r"[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?(:[0-9]{1,5})?"
_FOLDER = r"[A-Za-z0-9_~+,=:%-][A-Za-z0-9._~+,=:%-]*"
_BUCKET = r"[a-z0-9][-._a-z0-9]*"
_OBJECT = r"[A-Za-z0-9_~+,=:-][A-Za-z0-9._~+,=:-]*"
_IMAGE = r"[a-z0-9]+(([.]|__?|-+)[a-z0-9]+)*"
MOUNTED = {
    "pvc": rf"pvc://{_NAME}(/{SEGMENT})*/?",
    "configmap": rf"configmap://{_NAME}",
}
"""Regular expression of each scheme whose files are mounted into the Job's pod."""
REMOTE = {
    "https": rf"https://{_HOST}(/{_FOLDER})*/{SEGMENT}",
    "hf": rf"hf://{SEGMENT}/{SEGMENT}",
    "s3": rf"s3://{_BUCKET}(/{_OBJECT})*/?",
    "gs": rf"gs://{_BUCKET}(/{_OBJECT})*/?",
    "azure": rf"azure://{_BUCKET}(/{_OBJECT})*/?",
    "oci": rf"oci://{_HOST}(/{_IMAGE})+(:[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}|@sha256:[0-9a-f]{{64}})",
}
"""Regular expression of each scheme whose files the source Job downloads."""
SHAPES = {
    "pvc": "pvc://CLAIM/PATH",
    "configmap": "configmap://NAME",
    "https": "https://HOST/PATH/FILE",
    "hf": "hf://OWNER/REPOSITORY",
    "s3": "s3://BUCKET/PREFIX",
    "gs": "gs://BUCKET/PREFIX",
    "azure": "azure://CONTAINER/PREFIX",
    "oci": "oci://REGISTRY/REPOSITORY:TAG",
}
"""What a URI of each scheme looks like, in words."""
PATTERNS = MOUNTED | REMOTE
FORBIDDEN = r"[?#]|//[^/]*@"
"""What begins a query or a fragment, and credentials before a host; nothing of it matches any scheme's pattern."""


@dataclass(frozen=True)
class Uri:
    """The parts of a URI."""

    scheme: str
    host: str
    """The claim, the ConfigMap, the host with its port, the repository's owner, or the bucket."""
    path: str
    """The path without slashes at its ends; may be empty. That of ``oci`` ends with the tag or the digest."""

    @property
    def is_remote(self) -> bool:
        """Whether the source Job downloads the files."""
        return self.scheme in REMOTE


def split(text: str) -> Uri:
    """Return the parts of a URI; raises ValueError for one that no scheme allows, without quoting it."""
    scheme, _, rest = text.partition("://")
    if re.search(FORBIDDEN, text):
        raise ValueError(
            "the URI has a query, a fragment or credentials; remove them, put credentials into a Secret, and name it in"
            " secretRef"
        )
    if scheme not in PATTERNS or not re.fullmatch(PATTERNS[scheme], text):
        raise ValueError(f"the URI must be one of {', '.join(SHAPES.values())}")
    host, _, path = rest.partition("/")
    return Uri(scheme, host, path.strip("/"))
