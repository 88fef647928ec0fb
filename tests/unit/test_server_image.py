"""What an image's name tells of the server in it."""

from pathlib import Path

import pytest

from triton_converters.contract.formats import FORMATS
from triton_operator.candidates.server_image import (
    CPU_BACKENDS,
    image_by_digest,
    is_cpu_image,
    refusal,
    release,
    wants_shared_memory_flag,
)

ROOT = Path(__file__).parents[2]
NVIDIA = "nvcr.io/nvidia/tritonserver"
DIGEST = f"sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (f"{NVIDIA}:26.03-py3", "26.03"),
        (f"{NVIDIA}:25.02-tf2-python-py3", "25.02"),
        (f"{NVIDIA}:26.04-py3-igpu", "26.04"),
        ("registry.example:5000/mirror/tritonserver:24.10-py3@sha256:" + "0" * 64, "24.10"),
        (f"{NVIDIA}@sha256:" + "0" * 64, ""),
        ("registry.example:26.03/team/server:1.0", ""),
        ("team/server:v26.03-py3", ""),
        ("team/server:2026.03-py3", ""),
        ("triton-operator.local/tritonserver-cpu:0.1.0", ""),
    ],
)
def test_the_release_is_read_from_a_tag_of_nvidias_form(image: str, expected: str) -> None:
    assert release(image) == expected


@pytest.mark.parametrize(
    ("image", "image_id"),
    [
        (f"{NVIDIA}:26.03-py3", f"{NVIDIA}@{DIGEST}"),
        (f"{NVIDIA}", f"{NVIDIA}@{DIGEST}"),
        (f"{NVIDIA}:26.03-py3", f"docker-pullable://{NVIDIA}@{DIGEST}"),
        ("team/server:1", f"docker.io/team/server@{DIGEST}"),
        ("server", f"docker.io/library/server@{DIGEST}"),
        ("localhost/server:1", f"localhost/server@{DIGEST}"),
        ("registry:5000/server", f"registry:5000/server@{DIGEST}"),
        ("registry.example:5000/a/b/server:1", f"registry.example:5000/a/b/server@{DIGEST}"),
    ],
)
def test_an_image_is_taken_by_its_own_repositorys_digest(image: str, image_id: str) -> None:
    assert image_by_digest(image, image_id) == f"{image.removesuffix(':1').removesuffix(':26.03-py3')}@{DIGEST}"


@pytest.mark.parametrize(
    ("image", "image_id"),
    [
        ("team/server:1", ""),
        ("team/server:1", DIGEST),
        ("team/server:1", f"docker://{DIGEST}"),
        ("team/server:1", f"docker.io/team/other@{DIGEST}"),
        ("team/server:1", f"registry.example/team/server@{DIGEST}"),
        ("team/server:1", f"docker.io/team/server:1@{DIGEST}"),
        ("team/server:1", "docker.io/team/server@sha256:abc"),
        ("team/server:1", f"docker.io/team/server@{DIGEST}\n"),
        (f"team/server@{DIGEST}", f"docker.io/team/server@sha256:{'1' * 64}"),
        (f"team/server:1@{DIGEST}", f"docker.io/team/server@sha256:{'1' * 64}"),
    ],
)
def test_an_image_keeps_its_name_where_no_digest_of_its_own_repository_is_reported(image: str, image_id: str) -> None:
    assert image_by_digest(image, image_id) == image


@pytest.mark.parametrize("form", ["tf-savedmodel", "tf-trt"])
def test_tensorflow_is_refused_after_25_02_by_name_with_what_works(form: str) -> None:
    assert refusal(f"{NVIDIA}:25.02-py3", "tf-keras", form) is None
    assert refusal("team/server:latest", "tf-keras", form) is None, "its name tells nothing; the server itself will"
    message = refusal(f"{NVIDIA}:25.03-py3", "tf-keras", form)
    assert message is not None
    for words in (f"{NVIDIA}:25.03-py3", "25.03", form, "onnx", "trt", "25.02", "spec.serving.image"):
        assert words in message


def test_other_formats_are_served_by_every_release() -> None:
    for form in FORMATS.keys() - {"tf-savedmodel", "tf-trt", "hps"}:
        assert refusal(f"{NVIDIA}:26.08-py3", "pyt", form) is None


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("tag", [":0.1.0", "@sha256:" + "0" * 64, ""])
def test_our_cpu_image_serves_what_it_has_backends_for(form: str, tag: str) -> None:
    image = f"registry.example:5000/ours/tritonserver-cpu{tag}"
    assert is_cpu_image(image)
    message = refusal(image, "pyt", form)
    assert (message is None) is (FORMATS[form].backend in CPU_BACKENDS)
    if message is not None:
        assert f"has no backend {FORMATS[form].backend}" in message
        assert "use format ts-trace, ts-script, onnx" in message


def test_the_advice_names_what_the_source_converts_into() -> None:
    message = refusal("tritonserver-cpu:1", "tf-keras", "tf-trt")
    assert message is not None
    assert "use format onnx, or one of NVIDIA's images" in message


@pytest.mark.parametrize("tag", [":26.07-py3", f"@{DIGEST}", f":26.07-py3@{DIGEST}", ""])
def test_nvidias_own_image_has_no_backend_for_tables_and_another_may_have_it(tag: str) -> None:
    message = refusal(NVIDIA + tag, "hps", "hps")
    assert message is not None
    assert "build an image that has it" in message
    assert refusal(f"registry.example/tritonserver{tag}", "hps", "hps") is None


def test_the_cpu_images_backends_are_those_of_its_folder() -> None:
    folder = ROOT / "images" / "tritonserver-cpu" / "backends"
    ours = {path.name for path in folder.iterdir() if path.is_dir()}
    assert set(CPU_BACKENDS) == {*ours, "python"}, "Python's own backend is part of the image's base"


@pytest.mark.parametrize(
    ("tag", "wants"), [(":26.03-py3", False), (":26.04-py3", True), (":27.01-py3", True), (":1.0", False)]
)
def test_the_flag_for_shared_memory_goes_to_servers_that_know_it(tag: str, wants: bool) -> None:
    assert wants_shared_memory_flag(NVIDIA + tag) is wants
