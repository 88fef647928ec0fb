"""Twenty reports repeat on a bare Debian, and twenty images that somebody has changed do not."""

import base64
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy
import pytest
import xgboost
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from onnx import TensorProto

from tests.converters.conftest import authority, mount, trusting
from tests.converters.conversions import conversion
from tests.converters.onnx_models import Graph
from tests.converters.published import REFERENCE, REVISION, new_key, pem, predicate, public_pem, with_key
from tests.converters.registry_server import Registry, a_docker_config, serving
from tests.converters.run_stage import run_convert, run_reference
from tests.converters.test_published_image import NAME, manifest, pushed
from tests.local.debian import HOME, RELEASES, Debian, commands
from triton_converters.claim_store import samples
from triton_converters.claim_store.revision import content_digest
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.measurement_requests import ServedModel, Tolerance
from triton_converters.contract.predicate import AttestedGates, AttestedRevision, Predicate
from triton_converters.contract.publishing import PublishRequest
from triton_converters.publish import signatures
from triton_converters.publish.push import MANIFEST, Bytes, canonical, digest_of
from triton_converters.stages import publish

pytestmark = pytest.mark.integrations
__all__ = ["authority", "mount", "trusting"]
KEY = new_key()
SOURCE, MODEL, WIDTH, ROWS = "d" * 64, "m", 6, 300
REPLAY = f"SSL_CERT_FILE=/{HOME}/ca.pem DOCKER_CONFIG=/{HOME} ~/triton/bin/kubectl-triton replay"


@pytest.fixture(scope="session")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Debian:
    """A bare Debian in which a user has installed the plugin, as the README says."""
    found = Debian(RELEASES[0], tmp_path_factory.mktemp("debian"), counts=False)
    for _ in found.type(commands()[0]):
        pass
    return found


@pytest.fixture
def registry(debian: Debian, trusting: None, authority: tuple[Path, Path], tmp_path: Path) -> Iterator[Registry]:
    """A registry whose account and authority the Debian knows too."""
    (tmp_path / "registry").mkdir()
    with serving(tmp_path / "registry", authority[1], authority[0]) as found:
        config = a_docker_config(found.host)
        layout.CREDENTIALS_MOUNT.mkdir()
        (layout.CREDENTIALS_MOUNT / ".dockerconfigjson").write_text(config)
        (debian.home / "config.json").write_text(config)
        shutil.copy(authority[0], debian.home / "ca.pem")
        yield found


def replayed(debian: Debian, registry: Registry, digest: str, key: bytes, status: int) -> str:
    """What the command prints. Raises TypingError if it ends with another status."""
    (debian.home / "cosign.pub").write_bytes(key)
    return "".join(debian.type(f"{REPLAY} {registry.host}/{NAME}@{digest} --key ~/cosign.pub", status))


def graph(random: numpy.random.Generator) -> bytes:
    made = Graph()
    made.random = random
    hidden = made.add("Tanh", made.add("MatMul", "x", made.weight(WIDTH, 16)))
    answer = made.add("Softmax", made.add("MatMul", hidden, made.weight(16, 4)), axis=1)
    kind = TensorProto.FLOAT
    content: bytes = made.model({"x": (kind, ["n", WIDTH])}, {"y": (answer, kind, ["n", 4])}).SerializeToString()
    return content


def boosted(random: numpy.random.Generator) -> bytes:
    rows = random.normal(size=(ROWS, WIDTH))
    data = xgboost.DMatrix(rows, rows[:, 0] * rows[:, 1] > 0)
    trained = xgboost.train({"objective": "binary:logistic", "nthread": 1, "max_depth": 4}, data, 6)
    return bytes(trained.save_raw("json"))


def light(random: numpy.random.Generator) -> bytes:
    rows = random.normal(size=(ROWS, WIDTH))
    data = lightgbm.Dataset(rows, rows[:, 0] * rows[:, 1])
    settings = {"objective": "regression", "num_threads": 1, "verbosity": -1}
    content: str = lightgbm.train(settings, data, 6).model_to_string()
    return content.encode()


FORMATS: Mapping[str, tuple[str, Callable[[numpy.random.Generator], bytes]]] = {
    "onnx": ("model.onnx", graph),
    "xgboost": ("model.json", boosted),
    "lightgbm": ("model.txt", light),
}


def revision(seed: int) -> Predicate:
    """Put a model, its reference and its revision on the claim, as the stages do; return the report of it."""
    form = list(FORMATS)[seed % len(FORMATS)]
    name, make = FORMATS[form]
    source = layout.source_directory(SOURCE)
    source.mkdir(parents=True)
    (source / name).write_bytes(make(numpy.random.default_rng(seed)))
    code = ModelCode(form, Entrypoint(name, {}), 8)
    answers = run_reference(ReferenceRequest(REFERENCE, SOURCE, code, None, 64, needs_labels=False))
    keys = {"key": REVISION, "conversion_key": "c" * 16, "reference": REFERENCE, "source": SOURCE}
    made = run_convert(conversion(code, format="onnx", onnx_opset=17, model_name=MODEL, **keys))
    assert made.max_absolute_error is not None
    model = ServedModel(MODEL, "onnx", "fp32")
    return predicate(
        revision=AttestedRevision(REVISION, made.content, "onnx-fp32", MODEL, (model,), made.data_types, "c" * 64),
        gates=AttestedGates(
            signature=replace(answers.signature, max_batch_size=8),
            precision="fp32",
            tolerance=Tolerance(1e-4, 1e-4),
            max_absolute_error=made.max_absolute_error,
            samples=answers.samples,
            reference=REFERENCE,
            samples_digest=answers.samples_digest,
            message=f"{answers.samples} samples agree",
        ),
    )


def signed(registry: Registry, told: Predicate) -> str:
    """Publish a revision of the claim, signed and with its samples; return the digest."""
    with_key(pem(KEY))
    uri = f"oci://{registry.host}/{NAME}:v1"
    return publish.run(PublishRequest("0" * 16, uri, REVISION, told.to_json(), True, True)).digest


@dataclass(frozen=True)
class Image:
    """What was published, for who changes it."""

    registry: Registry
    digest: str
    told: Predicate

    @property
    def tags(self) -> list[str]:
        """The tags with its signatures."""
        return [self.digest.replace(":", "-") + suffix for suffix in ("", ".sig", ".att")]

    def blob(self, digest: str) -> Path:
        """The file in which the registry keeps a blob or a manifest."""
        (found,) = self.registry.folder.rglob(f"{digest.removeprefix('sha256:')}/data")
        return found

    def flip(self, digest: str, where: Callable[[bytes], int] = lambda content: len(content) // 2) -> str:
        """Change a byte of what the registry keeps under a digest; return the image's."""
        path = self.blob(digest)
        content = bytearray(path.read_bytes())
        content[where(content)] ^= 1
        path.write_bytes(content)
        return self.digest

    def layers(self) -> list[str]:
        return [each["digest"] for each in manifest(self.registry, self.digest)["layers"]]

    def put(self, body: Any) -> str:
        """Push another manifest, beside which the signatures of this one are put; return its digest."""
        pushed(self.registry).put_manifest(canonical(body), MANIFEST, other := digest_of(canonical(body)))
        for tag in self.tags[1:]:
            content = pushed(self.registry).manifest(tag)
            assert content is not None
            pushed(self.registry).put_manifest(content, MANIFEST, tag.replace(self.digest[7:], other[7:]))
        return other

    def signed_again(self, told: Predicate, key: EllipticCurvePrivateKey = KEY) -> str:
        """Sign the same image with another report alone."""
        self.unsigned()
        content = pushed(self.registry).manifest(self.digest)
        assert content is not None
        signatures.attach(pushed(self.registry), key, content, told.to_json().encode())
        return self.digest

    def unsigned(self, *suffixes: str) -> str:
        """Remove signatures; by default all."""
        for tag in self.tags if not suffixes else [self.tags[0] + each for each in suffixes]:
            shutil.rmtree(next(self.registry.folder.rglob(f"tags/{tag}")))
        return self.digest

    def in_envelopes(self, change: Callable[[dict[str, Any]], object]) -> str:
        """Change each envelope that is about the image, in its bundles and at its tag."""
        self.unsigned("")
        layers = manifest(self.registry, self.tags[2])
        for each in layers["layers"]:
            envelope = json.loads(self.blob(each["digest"]).read_bytes())
            change(envelope)
            content = Bytes(canonical(envelope))
            pushed(self.registry).put(content)
            each |= {"digest": content.digest, "size": content.length}
        pushed(self.registry).put_manifest(canonical(layers), MANIFEST, self.tags[2])
        return self.digest

    def again(self, change: Callable[[Path, Path], object]) -> str:
        """Change the claim's revision and samples, and have the key sign the image of it with a report that fits."""
        home, reference = layout.revision_directory(REVISION), layout.reference_directory(REFERENCE)
        change(home / "models" / MODEL, reference)
        told = replace(
            self.told,
            revision=replace(self.told.revision, content=content_digest(home)),
            gates=replace(self.told.gates, samples_digest=samples.digest(reference)),
        )
        return signed(self.registry, told)


def _payload(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    def changed(envelope: dict[str, Any]) -> None:
        statement = json.loads(base64.b64decode(envelope["payload"]))
        change(statement)
        envelope["payload"] = base64.b64encode(canonical(statement)).decode()

    return changed


def _rewritten(name: str, change: Callable[[Any], Any]) -> Callable[[Path, Path], None]:
    """Change the arrays of the first batch whose names begin so."""

    def write(_: Path, reference: Path) -> None:
        first = min((reference / "batches").glob("*.npz"))
        with numpy.load(first) as batch:
            arrays = {each: change(batch[each]) if each.startswith(name) else batch[each] for each in batch.files}
        numpy.savez(first, **arrays)

    return write


def _last_size(manifest: bytes) -> int:
    """Where the last digit of the last layer's size is: of anything else, the registry might say more."""
    return manifest.rindex(b"}]") - 1


def _less(image: Image) -> str:
    body = manifest(image.registry, image.digest)
    return image.put(body | {"layers": body["layers"][:-1]})


def _more(image: Image) -> str:
    body = manifest(image.registry, image.digest)
    return image.put(body | {"layers": body["layers"] + body["layers"][:1]})


def _other_weights(model: Path, _: Path) -> None:
    (model / "1/model.onnx").write_bytes(graph(numpy.random.default_rng(99)))


def _edited(**fields: Any) -> Callable[[Image], str]:
    """The key signs another report of the same image."""

    def sign(image: Image) -> str:
        parts = {name: replace(getattr(image.told, name), **change) for name, change in fields.items()}
        return image.signed_again(replace(image.told, **parts))

    return sign


def _by_a_stranger(image: Image) -> str:
    """A stranger's report beside the key's own signature."""
    image.unsigned("", ".att")
    content = pushed(image.registry).manifest(image.digest)
    assert content is not None
    kept = pushed(image.registry).manifest(image.tags[1])
    signatures.attach(pushed(image.registry), new_key(), content, image.told.to_json().encode())
    assert kept is not None
    pushed(image.registry).put_manifest(kept, MANIFEST, image.tags[1])
    return image.digest


SIGNED = "the key has not signed"
BYTES = "has not the SHA-256 that the registry tells"
Change = tuple[Callable[[Image], str], str]
CHANGES: Mapping[str, Change] = {
    "a byte of the model's layer": (lambda image: image.flip(image.layers()[0]), BYTES),
    "a byte of the samples' layer": (lambda image: image.flip(image.layers()[-1]), BYTES),
    "a byte of the manifest": (lambda image: image.flip(image.digest, _last_size), BYTES),
    "a layer more": (_more, SIGNED),
    "a layer less": (_less, SIGNED),
    "another digest in the command": (lambda image: "sha256:" + "0" * 64, "has no team/digits"),
    "no signature": (lambda image: image.unsigned(), SIGNED),
    "a report alone": (lambda image: image.unsigned("", ".sig"), SIGNED),
    "a signature alone": (lambda image: image.unsigned("", ".att"), SIGNED),
    "a figure of the report": (
        lambda image: image.in_envelopes(_payload(lambda told: told["predicate"]["gates"].update(samples=1))),
        SIGNED,
    ),
    "the digest in the report": (
        lambda image: image.in_envelopes(_payload(lambda told: told["subject"][0]["digest"].update(sha256="0" * 64))),
        SIGNED,
    ),
    "the type in the report": (
        lambda image: image.in_envelopes(_payload(lambda told: told.update(predicateType="https://slsa.dev/v1"))),
        SIGNED,
    ),
    "the signature of the report": (
        lambda image: image.in_envelopes(lambda told: told["signatures"][0].update(sig="AAAA")),
        SIGNED,
    ),
    "a report by a stranger": (_by_a_stranger, SIGNED),
    "a report of other files": (_edited(revision={"content": "0" * 64}), "its files are not those of its report"),
    "a report of other samples": (
        _edited(gates={"samples_digest": "0" * 64}),
        "its samples are not those of its report",
    ),
    "a report of more samples": (_edited(gates={"samples": 10**6}), "samples were sent, and the report is of 1000000"),
    "other weights, which the key signed": (lambda image: image.again(_other_weights), "Here it does not repeat"),
    "another answer, which the key signed": (
        lambda image: image.again(_rewritten("outputs/", lambda array: array + numpy.float32(0.01))),
        "Here it does not repeat",
    ),
    "other inputs, which the key signed": (
        lambda image: image.again(_rewritten("inputs/", lambda array: 1 - array)),
        "Here it does not repeat",
    ),
}
"""What is changed of an image, each in its own model, and what the command then says."""


@pytest.mark.parametrize(("seed", "change"), list(enumerate(CHANGES)), ids=lambda each: str(each).replace(" ", "-"))
def test_a_report_repeats_until_something_is_changed(
    debian: Debian, registry: Registry, seed: int, change: str
) -> None:
    told = revision(seed)
    digest = signed(registry, told)
    said = replayed(debian, registry, digest, public_pem(KEY), 0)
    print(said)
    assert f"Here it repeats: {told.gates.samples} samples agree" in said
    apply, words = CHANGES[change]
    found = replayed(debian, registry, apply(Image(registry, digest, told)), public_pem(KEY), 1)
    print(found)
    assert words in found


def test_a_strangers_key_and_a_tag_are_refused(debian: Debian, registry: Registry) -> None:
    digest = signed(registry, revision(0))
    assert SIGNED in replayed(debian, registry, digest, public_pem(new_key()), 1)
    (debian.home / "cosign.pub").write_bytes(public_pem(KEY))
    said = "".join(debian.type(f"{REPLAY} {registry.host}/{NAME}:v1 --key ~/cosign.pub", 1))
    assert "a signature binds no tag" in said


def test_another_number_of_cores_is_told(debian: Debian, registry: Registry) -> None:
    told = revision(0)
    here = replace(told.figures.environment, cpu="another processor, 64 cores", server_version="2.40.0")
    digest = signed(registry, replace(told, figures=replace(told.figures, environment=here)))
    said = replayed(debian, registry, digest, public_pem(KEY), 0)
    assert "Another processor than then:" in said
    assert "Another version of tritonserver than then: 2.51.0, and the report is of 2.40.0" in said
