"""``python3 -m triton_converters.replay REQUEST``: whether an image still answers as its signed report says.

It runs twice, in two pods. The first one has the network: it fetches what the key in SIGNING_MOUNT has signed. The
second one has a server of that image, and no network: it sends the samples, and judges the answers by the gates.
Nothing is believed of an image but what the key signed: the digest, and the report about it.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from triton_converters.claim_store import samples
from triton_converters.claim_store.dump import read_all, read_batches, read_sizes
from triton_converters.claim_store.revision import content_digest
from triton_converters.contract import layout
from triton_converters.contract.document import DocumentError
from triton_converters.contract.envelope import EXIT_FINAL
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.measurement_requests import Load, Measurement
from triton_converters.contract.predicate import Predicate
from triton_converters.contract.reasons import Reason
from triton_converters.contract.replaying import IMAGE, PREDICATE, ReplayRequest, ReplayResult
from triton_converters.failures import failure_of
from triton_converters.fetch import credentials, image
from triton_converters.fetch.docker_config import account
from triton_converters.fetch.registry import Repository
from triton_converters.gates.answers import scales_of
from triton_converters.gates.candidate import ServedCandidate, judge
from triton_converters.measuring.environment import observe
from triton_converters.measuring.server import Server
from triton_converters.publish import signatures
from triton_converters.publish.image import MODELS, SAMPLES
from triton_converters.publish.keys import KeyUnusableError, public_key
from triton_converters.publish.push import Registry

KEY = "cosign.pub"
"""The key of a Secret with the public key, as cosign has it."""


def main(arguments: list[str]) -> int:
    """Fetch or ask, write what came of it to the termination message, and return the exit code."""
    request = ReplayRequest.from_json(arguments[0])
    try:
        result = _ask(request) if request.grpc else _fetch(request)
        code = 0
    except (Exception, SystemExit) as error:
        result = ReplayResult(False, failure_of(error, layout.INCOMING_MOUNT).message)
        code = EXIT_FINAL
    Path(os.environ.get("TERMINATION_LOG", "/dev/termination-log")).write_text(result.to_json(), encoding="utf-8")
    return code


def _fetch(request: ReplayRequest) -> ReplayResult:
    """Write the image and its report, if the key signed both. Raises StageError."""
    try:
        key = public_key((layout.SIGNING_MOUNT / KEY).read_bytes())
    except KeyUnusableError as error:
        raise _refused(f"the key cannot be used: {error}") from None
    repository = Repository(request.host, request.name, account(credentials.read(), request.host, request.name))
    what = f"{request.host}/{request.name}@{request.digest}"
    manifest = repository.manifest(request.digest)
    image.check(manifest, request.digest, f"the manifest of {what}")
    told = signatures.predicates(Registry(repository), key, request.digest)
    if not told:
        raise _refused(f"the key has not signed {what} with a report, so nothing of it was fetched")
    predicate = _newest(told)
    layers = image.of(repository, manifest, what)
    if layers is None:
        raise _refused(f"{what} is no image")
    root = layout.INCOMING_MOUNT / IMAGE
    image.fetch(repository, layers, root, {MODELS: MODELS, SAMPLES: SAMPLES}, ())
    kept = layout.INCOMING_MOUNT / SAMPLES
    if (root / SAMPLES).is_dir():
        (root / SAMPLES).rename(kept)
    _check(root, kept, predicate)
    (layout.INCOMING_MOUNT / PREDICATE).write_text(predicate.to_json(), encoding="utf-8")
    return ReplayResult(True, "fetched", reports=len(told))


def _newest(told: list[Any]) -> Predicate:
    """Return the report that was measured last."""
    found = []
    for each in told:
        try:
            found.append(Predicate.from_value(each))
        except DocumentError as error:
            print(f"a report is of another version: {error}", flush=True)
    if not found:
        raise _refused("its report is one that this version cannot read; replay it with the version that made it")
    return max(found, key=lambda each: each.figures.measured_at)


def _check(root: Path, kept: Path, predicate: Predicate) -> None:
    """Raise StageError unless these are the files and the samples that the report is of."""
    if content_digest(root) != predicate.revision.content:
        raise _refused("its files are not those of its report")
    if not kept.is_dir():
        raise _refused("it is signed and whole, but holds no samples to send; publish it with its samples")
    if samples.digest(kept) != predicate.gates.samples_digest:
        raise _refused("its samples are not those of its report")


def _ask(request: ReplayRequest) -> ReplayResult:
    """Send the samples, and judge the answers as the report did. Raises StageError."""
    predicate = Predicate.from_json((layout.INCOMING_MOUNT / PREDICATE).read_text(encoding="utf-8"))
    home, gates = layout.INCOMING_MOUNT / SAMPLES, predicate.gates
    models = layout.INCOMING_MOUNT / IMAGE / MODELS
    load = Load(request.grpc, "grpc", request.http, (), Measurement("CountWindows", 1, 0, 0))
    server = Server(load, predicate.revision.model, [each.name for each in predicate.revision.models])
    server.wait_ready()
    batched = gates.signature.max_batch_size > 0
    candidate = ServedCandidate(
        declared=server.signature,
        infer=server.infer,
        signature=gates.signature,
        precision=gates.precision,
        tolerance=gates.tolerance,
        scales=lambda: scales_of(read_all(home), batched, gates.tolerance, gates.precision),
        batches=read_batches(home),
        sizes=read_sizes(home),
        files=(
            (models / each.name / layout.VERSION / FORMATS[each.format].file, each)
            for each in predicate.revision.models
        ),
        keep_outputs=False,
        published_types=predicate.revision.data_types,
        engine_caches=(),
    )
    failed, where = judge(candidate), observe(server, ())
    answers = candidate.answers
    result = ReplayResult(
        repeats=failed is None,
        message=failed.message if failed else answers.describe() if answers else "",
        samples=answers.samples if answers else 0,
        max_absolute_error=answers.max_absolute_error if answers else 0.0,
        server_version=where.server_version,
        cpu=where.cpu,
    )
    if result.repeats and result.samples != gates.samples:
        words = f"{result.samples} samples were sent, and the report is of {gates.samples}"
        return replace(result, repeats=False, message=words)
    return result


def _refused(why: str) -> StageError:
    return StageError(Reason.SOURCE_INVALID, why)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
