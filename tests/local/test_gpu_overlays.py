"""Every overlay for a GPU, up to its first conversions: all that a machine without one lacks is the GPU."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from examples.example import FOLDER, render, variant
from tests.simulation.cluster import SETTINGS, Cluster
from tests.unit.test_examples import answers
from triton_local.fields import lacking, on_one_machine
from triton_local.gpus import WHOLE_GPU, Gpu
from triton_local.install import ENVIRONMENT
from triton_local.session import Given
from triton_operator import names
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.candidates.candidate import candidates_of
from triton_plugin.drafting.validation.files import faults_in_words

Body = dict[str, Any]
OVERLAYS = sorted(file.parent for file in FOLDER.glob("**/*gpu*/kustomization.yaml"))
SETTINGS_WITH_IMAGE = replace(SETTINGS, converter_gpu_image="example/converter-gpu:1")
STAND_IN = "spec.models: of this server, PyTorch alone has a GPU"
"""What a machine with a GPU still refuses: its server is no image of NVIDIA's."""


def given(folder: Path, *gpus: Gpu) -> Given:
    """A machine with the example's claims and images, and a Python with PyTorch."""
    claims = [each["metadata"]["name"] for each in render(folder) if each["kind"] == "PersistentVolumeClaim"]
    images = {ENVIRONMENT: "ours@sha256:1", "nvcr.io/nvidia/tritonserver:25.02-py3": "server@sha256:2"}
    return Given(dict.fromkeys(claims, folder), images=images, gpus=gpus, isolates=False)


@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda folder: str(folder.relative_to(FOLDER)))
def test_an_overlay_is_valid_and_lacks_nothing_but_the_gpu(folder: Path) -> None:
    deployment = dict(variant(str(folder)).deployment)
    assert list(faults_in_words(deployment)) == []
    spec = deployment["spec"]
    (refusal,) = lacking(spec, given(folder))
    assert "nvidia-smi shows no GPU of this machine" in refusal
    gpu = Gpu(spec["gpu"].get("product", "NVIDIA-H200"), "580.159.03")
    assert [each for each in lacking(spec, given(folder, gpu)) if not each.startswith(STAND_IN)] == []


@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda folder: str(folder.relative_to(FOLDER)))
def test_the_first_conversions_are_of_the_candidates_and_have_the_gpu(folder: Path) -> None:
    spec = variant(str(folder)).deployment["spec"]
    planned, _ = on_one_machine(spec, given(folder))
    cluster = Cluster(planned, answers(folder), settings=SETTINGS_WITH_IMAGE).until_active("convert")
    states = {each["name"]: each["state"] for each in cluster.status["candidates"]}
    assert states.keys() == {each.name for each in candidates_of(TritonDeploymentSpec.model_validate(spec))}
    assert not {"Skipped", "Failed"} & set(states.values())
    jobs = [each for each in cluster.of_kind("Job") if each["metadata"]["labels"][names.STAGE_LABEL] == "convert"]
    containers = [each for job in jobs for each in job["spec"]["template"]["spec"]["initContainers"]]
    limits = [each["resources"]["limits"] for each in containers if each["name"] == "run"]
    assert [each[WHOLE_GPU] for each in limits] == ["1"] * len(jobs)
