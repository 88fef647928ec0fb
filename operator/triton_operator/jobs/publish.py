"""The Job that pushes what passed as an image, and signs it."""

from dataclasses import replace

from triton_converters.contract import layout
from triton_converters.contract.predicate import Predicate
from triton_converters.contract.publishing import PublishRequest, PublishResult
from triton_operator import names
from triton_operator.api.publish import Publish
from triton_operator.context import Context
from triton_operator.resources.volumes import CREDENTIALS, SIGNING, secret_volume
from triton_operator.resources.work import Download, Work

STAGE = "publish"
"""The Job's stage."""


def publish_work(context: Context, asked: Publish, predicate: str) -> Work[PublishRequest, PublishResult]:
    """Return the Job's work. ``predicate``: the report of what passed, as JSON.

    Its key covers what is published, with which Secrets, and why it passed. An edit that changes nothing of that
    publishes nothing again, although the report of another image would have another spec. The image is the
    installation's: an older one need not know the request, and nothing of the result depends on it.
    """
    report = Predicate.from_json(predicate)
    evidence = replace(report, identity=replace(report.identity, spec_digest="", spec=None))
    request = PublishRequest(
        key="",
        uri=asked.uri,
        revision=report.revision.key,
        predicate=predicate,
        signs=asked.signing is not None,
        samples=asked.samples,
    )
    key = names.result_key(STAGE, request, evidence, asked.secret_ref, asked.signing, without=("predicate",))
    secrets = [(CREDENTIALS, asked.secret_ref, layout.CREDENTIALS_MOUNT)]
    if asked.signing is not None:
        secrets.append((SIGNING, asked.signing.secret_ref, layout.SIGNING_MOUNT))
    mounted = [secret_volume(each.name, volume, place) for volume, each, place in secrets if each is not None]
    return Work(
        stage=STAGE,
        request=replace(request, key=key),
        deadline_seconds=context.spec.conversion.active_deadline_seconds,
        shape=Download(
            tuple(volume for volumes, _ in mounted for volume in volumes),
            tuple(mount for _, mounts in mounted for mount in mounts),
            image=context.settings.converter_image,
        ),
    )
