"""Some variants through a real tritonserver and the profile stage, in their images: the verdicts must be the same.

Run by `make bench-gates-served`, after the images are built.
"""

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from bench.gates.claim import key_of, publish_reference, write_config
from bench.gates.run import Case, Variant, graph_of, prepare, variants
from bench.gates.subjects import BY_NAME
from bench.gates.trial import Reference, verdict
from hack.imagebuild.pod import Pod, serving
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import DEFAULT_TOLERANCES, Measurement, ProfileRequest, Sweep
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ProfileResult
from triton_converters.convert.onnx_graph import declare_output_sizes

REVISION = "5e7e15105e7e1510"
CHOSEN = (
    ("digits-mlp", "output zeroed", "fp32"),
    ("digits-mlp", "class off by one", "fp16"),
    ("digits-mlp", "as it is", "fp32"),
    ("digits-mlp", "sums in another order", "fp16"),
    ("iris-neighbours", "batch frozen", "fp32"),
    ("iris-neighbours", "as it is", "fp32"),
    ("vit", "channel permuted", "fp32"),
    ("vit", "layer of another seed", "fp16"),
    ("vit", "layer overflows in fp16", "fp32"),
    ("vit", "as it is", "fp16"),
    ("vit", "simplified graph", "fp32"),
    ("bert", "inputs swapped", "fp32"),
    ("bert", "mask dropped", "fp16"),
    ("bert", "sums in another order", "fp32"),
    ("forecast", "noise of 5 %", "fp32"),
    ("forecast", "as it is", "fp16"),
    ("vowel-classes", "length frozen", "fp32"),
    ("vowel-classes", "class off by one", "fp32"),
    ("vowel-classes", "as it is", "fp32"),
    ("name-decoder", "output scaled", "fp16"),
    ("name-decoder", "simplified graph", "fp16"),
    ("vit-masked", "as it is", "fp32"),
)
"""Subject, rule and precision; of a rule with several places, the first."""
QUICK = Measurement("TimeWindows", 20, 200, 90)
"""Figures are not what is looked at here."""


@dataclass(frozen=True)
class Trial:
    """A variant that is served."""

    name: str
    label: str
    case: Case
    precision: str
    expected: str
    """The verdict in the process of the benchmark."""


def main() -> int:
    """Serve all, and print both verdicts of each; return 1 if any two differ."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        trials = list(_trials(root))
        missing = len(CHOSEN) - len(trials)
        with serving(root, REVISION) as pod:
            different = [trial.label for trial in trials if not _agrees(pod, trial)]
    print(f"{len(trials) - len(different)} of {len(trials)} verdicts are the same, {missing} variants were not made")
    return 1 if different or missing else 0


def _trials(root: Path) -> Iterator[Trial]:
    """Publish the references and the variants, and judge them here."""
    for name in dict.fromkeys(subject for subject, _, _ in CHOSEN):
        place = root / "work" / name
        place.mkdir(parents=True)
        case = prepare(BY_NAME[name], place)
        case.references[True] = publish_reference(_made(case), key_of(name), root)
        found: dict[str, Variant] = {}
        for variant in variants(case, lambda _: None):
            found.setdefault(variant.rule, variant)
        for subject, rule, precision in CHOSEN:
            if subject == name and rule in found:
                yield _published(root, case, found[rule], precision)


def _published(root: Path, case: Case, variant: Variant, precision: str) -> Trial:
    label = f"{case.subject.name}, {variant.rule}, {precision}"
    name = "".join(each if each.isalnum() else "_" for each in label)
    directory = layout.model_repository(REVISION, root) / name
    path = directory / "1" / "model.onnx"
    path.parent.mkdir(parents=True)
    graph = graph_of(variant, precision)
    onnx.save(graph, str(path))
    declare_output_sizes(path)
    made = _made(case)
    write_config(directory, made, dynamic_batching=case.size > 1)
    failed = verdict(variant.open(graph, tuple(case.framework)), path, precision, made)
    return Trial(name, label, case, precision, str(failed.reason if failed else Reason.PASSED))


def _agrees(pod: Pod, trial: Trial) -> bool:
    """Run the profile stage, print both verdicts, and return whether they are the same."""
    size = _made(trial.case).signature.max_batch_size
    request = ProfileRequest(
        key=key_of(trial.name),
        revision=REVISION,
        reference=key_of(trial.case.subject.name),
        model_name=trial.name,
        max_batch_size=size,
        format="onnx",
        precision=trial.precision,
        tolerance=DEFAULT_TOLERANCES[trial.precision],
        keep_outputs=False,
        load=pod.load(QUICK),
        offline=Sweep((1,), (1,), True),
        online=Sweep((1,), (1,), False),
    )
    _, outcome, output = pod.run_stage("profile", request)
    result: Any = outcome.result
    found = result.reason if isinstance(result, ProfileResult) else f"{outcome.reason}: {output[-300:]}"
    same = found == trial.expected
    print(f"{'same' if same else 'DIFFERENT'}: {trial.label}: here {trial.expected}, served {found}", flush=True)
    return same


def _made(case: Case) -> Reference:
    """Return the reference with a dataloader. Raises what the operator's stage raises."""
    made = case.references[True]
    if isinstance(made, StageError):
        raise made
    return made


if __name__ == "__main__":
    sys.exit(main())
