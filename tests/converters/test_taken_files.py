"""What is taken of a source: just the files that a stage can read are published, mounted and keyed."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_spec, an_ensemble, candidate
from triton_converters.claim_store.digest import digest_of
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.results import ReferenceResult, Signature, SourceResult, Tensor
from triton_converters.fetch import mounted as mounted_files
from triton_converters.stages import source
from triton_operator.api.triton_deployment import parse
from triton_operator.candidates.attempt import Attempt
from triton_operator.candidates.candidate import candidates_of
from triton_operator.context import Context
from triton_operator.jobs.convert import work_and_damages
from triton_operator.jobs.metrics import metrics_work
from triton_operator.jobs.packages import packages_works
from triton_operator.jobs.reference import Dump, basis, reference_work
from triton_operator.jobs.source import source_work
from triton_operator.observed.history import History
from triton_operator.observed.snapshot import observe
from triton_operator.planning.pins import pinned_images
from triton_operator.resources.job import job
from triton_operator.resources.work import AnyWork

Body = dict[str, Any]
NOW = datetime(2026, 11, 29, tzinfo=UTC)
ANOTHER = b"x"
"""What makes any file another one."""
CODE = ("loader.py", "ocr/loader.py", "ocr/deep/metrics.py", "shared/metrics.py")
LOOSE = ("weights.bin", "ocr/weights.bin", "ocr.txt", "ocr/labels.txt", "data/train/x.csv", "data/y.csv", "README.md")
FOLDERS = ("asr/config.pbtxt", "asr/1/model.onnx", "asr/1/weights.bin", "asr/labels.txt", "asr-2/config.pbtxt")
GRAPHS = ("a.onnx", "b.onnx", "ocr/a.onnx", "ocr/b.onnx", "requirements.txt")


class Pass(NamedTuple):
    """A pass over an object whose stages all go well."""

    keys: Sequence[str]
    """Of everything that is made from the source."""
    readable: set[str]
    """The files of the source that a container with code of others, or a server, can read."""


def a_model(path: str, name: str = "m") -> Body:
    return {
        "name": name,
        "format": "onnx",
        "path": path,
        "config": {"maxBatchSize": 4},
        "candidates": [candidate("onnx-fp32")],
    }


def an_object(*paths: str, **fields: Any) -> Body:
    """The spec of an object that serves the models at these paths, without a dataloader."""
    if len(paths) == 1:
        spec = a_spec(models=[a_model(*paths)], accuracy={})
    else:
        spec = an_ensemble("onnx-fp32") | {"accuracy": {}}
        spec["models"] = [a_model(path, name) for path, name in zip(paths, ("sparse", "dense"), strict=True)]
    for name in ("dataloader", "metrics"):
        del spec[name]
    return spec | {"source": {"uri": "pvc://models"}} | fields


def put(files: Mapping[str, bytes]) -> None:
    """Replace the files of the volume that holds the source."""
    shutil.rmtree(layout.SOURCE_MOUNT, ignore_errors=True)
    for name, content in files.items():
        (layout.SOURCE_MOUNT / name).parent.mkdir(parents=True, exist_ok=True)
        (layout.SOURCE_MOUNT / name).write_bytes(content)


def passed(spec: Body) -> Pass:
    """What follows from the spec and the files that are there now."""
    deployment = parse(Cluster(spec).body())
    context = Context(deployment, observe("digits", ()), SETTINGS, NOW, pinned_images(deployment, History(), SETTINGS))
    found = list(works(context, source.run(source_work(context).request)))
    mounts = [mount for work in found for mount in mounted(job(context, work))]
    roots = {Path(each["mountPath"]) for each in mounts if "/sources/" in each.get("subPath", "")}
    files = {path.relative_to(root).as_posix() for root in roots for path in root.rglob("*") if path.is_file()}
    return Pass([each.key for each in found], files)


def works(context: Context, result: SourceResult) -> Iterator[AnyWork]:
    """The work of each stage that is made from the source; what is made from its revision depends on that alone."""
    yield from (work for _, work in packages_works(context, result))
    reference = reference_work(context, result)
    yield reference
    tensor = Tensor("x", "FP32", (1,))
    dump = Dump(result, reference.key, ReferenceResult(Signature((tensor,), (tensor,), 4), 64, 8, 1.0))
    for each in candidates_of(context.spec):
        work, _ = work_and_damages(context, dump, each)
        yield work
        if context.spec.metrics is not None:
            yield metrics_work(context, dump, [Attempt(each, work.key, profile_key="0" * 16)])


def mounted(body: Body) -> Iterator[Body]:
    """The mounts of a Job's containers, but for those of ours that look after the claim, which mount all of it."""
    pod = body["spec"]["template"]["spec"]
    for container in (*pod.get("initContainers", ()), *pod["containers"]):
        if container["name"] == "run":
            yield from container["volumeMounts"]


@st.composite
def objects(draw: st.DrawFn) -> tuple[Body, Mapping[str, bytes]]:
    """An object, and a source with models of it and of others, code, and loose files."""
    names = draw(st.sets(st.sampled_from([*CODE, *LOOSE, *FOLDERS, *GRAPHS])))
    files = {name: name.encode() for name in sorted({*names, draw(st.sampled_from([*FOLDERS[:4], *GRAPHS[:4]]))})}
    there = [each for each in (*GRAPHS[:4], "asr", "ocr") if any(f"{name}/".startswith(f"{each}/") for name in files)]
    paths = draw(st.lists(st.sampled_from(there), min_size=1, max_size=2))
    code = st.fixed_dictionaries({"entrypoint": st.sampled_from(CODE)})
    fields = {name: each for name in ("dataloader", "metrics") if (each := draw(st.none() | code)) is not None}
    read = {"uri": "pvc://models", "include": draw(st.just([]) | st.just(["*"]))}
    conversion = {"requirements": "requirements.txt"} if "requirements.txt" in files else {}
    return an_object(*paths, source=read, conversion=conversion, **fields), files


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(objects())
def test_a_file_that_changes_changes_a_key_if_and_only_if_a_stage_can_read_it(
    mount: Path, drawn: tuple[Body, Mapping[str, bytes]]
) -> None:
    spec, files = drawn
    put(files)
    before = passed(spec)
    changed = set()
    for name, content in files.items():
        put({**files, name: content + ANOTHER})
        if passed(spec).keys != before.keys:
            changed.add(name)
    assert changed == before.readable


def a_folder(name: str, *others: str) -> set[str]:
    return {f"{name}/{file}" for file in ("config.pbtxt", "labels.txt", "1/model.onnx", "1/weights", *others)}


TEN = {"README.md", "loader.py", "code/loader.py", "code/labels.txt", "data/x.csv", "data/y.csv"}.union(
    *map(a_folder, "abcdefghij")
)
"""A repository of ten models, and loose files."""
DIGEST_OF_TEN = digest_of({name: sha256(name.encode()).hexdigest() for name in TEN}, single=False)
LOADER = {"entrypoint": "code/loader.py"}
STEP = {"name": "step", "format": "triton-python", "path": "c/1/model.onnx", "requirements": "code/labels.txt"}


@pytest.mark.parametrize(
    ("spec", "taken"),
    [
        (an_object("c"), a_folder("c")),
        (an_object("c/1/model.onnx"), {"c/1/model.onnx", "c/1/weights"}),
        (an_object("c", "d/1/model.onnx"), a_folder("c") | {"d/1/model.onnx", "d/1/weights"}),
        (an_object("c", dataloader=LOADER), TEN),
        (an_object("c", metrics=LOADER), TEN),
        (an_object("c", conversion={"requirements": "code/labels.txt"}), a_folder("c") | {"code/labels.txt"}),
        (an_object("c", models=[STEP]), a_folder("c") - {"c/config.pbtxt", "c/labels.txt"} | {"code/labels.txt"}),
        (an_object("README.md"), TEN),
        (an_object("c", source={"uri": "pvc://models", "sha256": DIGEST_OF_TEN}), TEN),
        (an_object("c", source={"uri": "pvc://models", "include": ["c/*", "d/*"]}), a_folder("c") | a_folder("d")),
    ],
)
def test_an_object_takes_what_it_names_of_a_repository_of_ten(mount: Path, spec: Body, taken: set[str]) -> None:
    put({name: name.encode() for name in TEN})
    assert passed(spec).readable == taken


def test_an_edit_by_which_other_files_are_taken_converts_again_as_the_pinned_images_know() -> None:
    specs = [an_object("c"), an_object("c", metrics=LOADER), an_object("d")]
    assert len({basis(parse(Cluster(spec).body()).spec) for spec in specs}) == len(specs)


def test_an_edit_of_code_that_reads_all_of_the_source_reads_none_of_it_again() -> None:
    """What code reads is not guessed from its arguments, so an edit of one fetches nothing."""
    keys = set()
    for unit in ("km/h", "m/s"):
        spec = an_object("c", metrics=LOADER | {"arguments": {"unit": unit}})
        deployment = parse(Cluster(spec).body())
        images = pinned_images(deployment, History(), SETTINGS)
        keys.add(source_work(Context(deployment, observe("digits", ()), SETTINGS, NOW, images)).key)
    assert len(keys) == 1


def stays_elsewhere() -> None:
    """What no other object's files may keep this one from."""
    root = layout.SOURCE_MOUNT
    (root / "d" / "gone").symlink_to("nowhere")
    (root / "d" / "out").symlink_to("/etc")
    os.mkfifo(root / "pipe")
    (root / "e" / "two\nlines").touch()


@pytest.mark.parametrize(
    "fields",
    [
        {"paths": ("c/1/model.onnx", "a")},
        {"include": ("c/*", "a/*")},
        {"paths": ("c",), "requirements": "a/labels.txt"},
    ],
)
def test_what_is_not_taken_is_not_judged(mount: Path, fields: Body) -> None:
    put({name: name.encode() for name in TEN})
    stays_elsewhere()
    if "include" in fields:
        (layout.SOURCE_MOUNT / "d" / "out").unlink()
    taken = source.run(SourceRequest("0" * 16, "pvc://models", "", "", **fields))
    names = {path.split("/")[0] for path in published(taken)}
    assert names == {"a", "c"}
    with pytest.raises(StageError):
        source.run(SourceRequest("0" * 16, "pvc://models", "", ""))


def test_a_folder_that_is_not_taken_is_not_looked_into(mount: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put({name: name.encode() for name in TEN})
    listed, seen = Path.iterdir, set()

    def look(self: Path) -> Iterator[Path]:
        seen.add(self.name)
        return listed(self)

    monkeypatch.setattr(Path, "iterdir", look)
    source.run(SourceRequest("0" * 16, "pvc://models", "", "", paths=("c/1/model.onnx",)))
    assert not {"d", "data", "code"} & seen


def published(result: SourceResult) -> set[str]:
    root = layout.source_directory(result.digest)
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("fields", "reason", "words"),
    [
        ({"paths": ("c/1/modle.onnx",)}, "EntrypointInvalid", "has no 'c/1/modle.onnx'; it has: 'README.md'"),
        ({"paths": ("c", "cc")}, "EntrypointInvalid", "has no 'cc'; it has: 'README.md'"),
        ({"models": ("cc",)}, "EntrypointInvalid", "has no 'cc'; it has: 'README.md'"),
        ({"paths": ("c",), "requirements": "r.txt"}, "RequirementsInvalid", "no file r.txt, which spec.conversion"),
        ({"step_requirements": ("r.txt",)}, "RequirementsInvalid", "its text files: 'a/labels.txt'"),
        (
            {"include": ("d/*",), "models": ("c",)},
            "EntrypointInvalid",
            "has no 'c', and spec.source.include does not name it; it has: 'd/1/model.onnx'",
        ),
    ],
)
def test_a_typing_error_copies_nothing(
    mount: Path, fields: Body, reason: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put({name: name.encode() for name in TEN})
    monkeypatch.delattr(mounted_files, "copy")
    with pytest.raises(StageError) as caught:
        source.run(SourceRequest("0" * 16, "pvc://models", "", "", **fields))
    assert (caught.value.reason, caught.value.final) == (reason, True)
    assert words in caught.value.message
