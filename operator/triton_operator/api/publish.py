"""Where what passed is published as an image, and the key that signs it."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from triton_converters.contract import publishing, uris
from triton_operator.api.pod import LocalReference
from triton_operator.api.schema import ApiType, rules


def _checked(uri: str) -> str:
    publishing.target(uri)
    return uri


PublishUri = Annotated[
    str,
    StringConstraints(max_length=512),
    AfterValidator(_checked),
    Field(
        json_schema_extra=rules(
            (
                f"self.matches('^{uris.PUBLISHED}$')",
                "publish.uri must be oci://REGISTRY/REPOSITORY or oci://REGISTRY/REPOSITORY:TAG: correct it",
            )
        )
    ),
]


class SigningKey(ApiType):
    """The key that signs images and their reports."""

    secret_ref: LocalReference
    """Secret with the keys `cosign.key` and `cosign.password`, as `cosign generate-key-pair k8s://NAMESPACE/NAME` makes
    it, which only the publish Job mounts."""


class Publish(ApiType):
    """The image that what passed is published as."""

    uri: PublishUri
    """Where the image goes: `oci://REGISTRY/REPOSITORY[:TAG]`. Without a tag, it is the revision's key."""
    secret_ref: LocalReference | None = None
    """Secret with the account of the registry, of type `kubernetes.io/dockerconfigjson`, which only the publish Job
    mounts. Default: none."""
    signing: SigningKey | None = None
    """The key that signs the image and its report. Default: none; the image has no signature and no report."""
    samples: bool = False
    """Whether the image also holds the reference's inputs, labels and outputs, which a replay needs and which are your
    data. Default: false."""
