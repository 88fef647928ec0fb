"""Ensembles, as the API server takes and refuses them."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.apiserver.custom_resources import MINIMAL, changed
from tests.apiserver.kubectl import Kubectl
from tests.apiserver.test_crd import refusal
from tests.simulation.deployments import a_cascade, an_ensemble

DENSE = ("onnx-fp32", "ts-trace-fp32")
BODY: dict[str, Any] = changed(MINIMAL, {"spec": an_ensemble(*DENSE)})
CASCADE: dict[str, Any] = changed(
    MINIMAL,
    {
        "spec": a_cascade(*DENSE, config={"maxBatchSize": 8}),
        "spec.ensemble.maxBatchSize": 8,
        "spec.performance.offline.batchSizes": [1, 8],
    },
)
"""A batch of a called model may be smaller than the ensemble's: the step's code decides what it asks."""
STEPS = "spec.ensemble.steps"
MANY = [{"name": f"c{number}", "format": "onnx", "precision": "fp32"} for number in range(9)]
FAMILY = {"name": "dense", "format": "tf-keras", "entrypoint": "dense.py", "candidates": MANY[:1]}


def test_an_ensemble_is_taken_as_it_is(kubectl: Kubectl) -> None:
    kubectl("create", "--validate=strict", "-f", "-", body=BODY)
    assert kubectl.get("td", "digits")["spec"] == changed(BODY, {"spec.serving.replicas": 1})["spec"]
    said = [kubectl("apply", "-f", "-", body=BODY).split()[-1] for _ in range(2)]
    assert said[-1] == "unchanged"


def test_a_model_that_a_step_calls_needs_no_step(kubectl: Kubectl) -> None:
    assert "digits" in kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", body=CASCADE)


def test_a_step_may_leave_an_output_that_it_declares(kubectl: Kubectl) -> None:
    body = changed(BODY, {"spec.models.0": a_declaring(outputs=["OUTPUT0", "MORE"])})
    assert "digits" in kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", body=body)


def test_every_size_may_be_asked_of_a_model_without_batch_dimension(kubectl: Kubectl) -> None:
    body = changed(BODY, {"spec.performance": {"offline": {"batchSizes": [256, 65536]}}})
    assert "digits" in kubectl("create", "--dry-run=server", "-f", "-", body=body)


TENSORS = [{"name": "x", "dataType": "BYTES", "dims": [-1]}]
STEP = {"name": "sparse", "format": "triton-python", "entrypoint": "sparse.py"}
UNDECLARED = "a step must connect every input that its model declares, and only inputs and outputs that it declares"


def a_declaring(inputs: Sequence[str] = ("KEYS", "NUMKEYS"), outputs: Sequence[str] = ("OUTPUT0",)) -> dict[str, Any]:
    """The step, with declared tensors of these names."""
    sides = {"inputs": inputs, "outputs": outputs}
    return STEP | {side: [TENSORS[0] | {"name": name} for name in names] for side, names in sides.items()}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "several models alone": (
        {"spec.ensemble": ...},
        "several models, or a model of format hps or triton-python, need an ensemble",
    ),
    "tables alone": (
        {"spec.ensemble": ..., "spec.models": BODY["spec"]["models"][:1]},
        "several models, or a model of format hps or triton-python, need an ensemble",
    ),
    "a call of no model": (
        {"spec.models.0": STEP | {"calls": ["other"]}},
        "calls must name entries of spec.models: correct the name, or add the model",
    ),
    "a step that calls itself": ({"spec.models.0": STEP | {"calls": ["sparse"]}}, "calls must not name a model of"),
    "steps that call each other": (
        {
            "spec.models.0": STEP | {"calls": ["dense"]},
            "spec.models.1": STEP | {"name": "dense", "calls": ["sparse"]},
        },
        "calls must not name a model of format triton-python, because models that ask each other may wait for ever",
    ),
    "calls of a model that is no code": (
        {"spec.models.1.calls": ["sparse"]},
        "calls are of code of format triton-python, which can ask other models: remove calls",
    ),
    "a call twice": ({"spec.models.0": STEP | {"calls": ["dense", "dense"]}}, "Duplicate value"),
    "a step of no model": ({f"{STEPS}.0.model": "other"}, "ensemble.steps must have one step for each of spec.models"),
    "a model without step": ({STEPS: BODY["spec"]["ensemble"]["steps"][:1]}, "one step for each of spec.models"),
    "a model twice": ({f"{STEPS}.0.model": "dense"}, "Duplicate value"),
    "the ensemble's name": ({"spec.ensemble.name": "dense"}, "ensemble.name must differ from the models' names"),
    "a tensor from nowhere": (
        {f"{STEPS}.1.inputMap.0.tensor": "NOTHING"},
        "every tensor of an inputMap must be an input of the ensemble or in the outputMap of an earlier step",
    ),
    "a step that feeds itself": (
        {f"{STEPS}.1.inputMap.0.tensor": "DENSE_OUTPUT"},
        "every tensor of an inputMap must be an input of the ensemble or in the outputMap of an earlier step",
    ),
    "a step before the one that makes its input": (
        {STEPS: BODY["spec"]["ensemble"]["steps"][::-1]},
        "every tensor of an inputMap must be an input of the ensemble or in the outputMap of an earlier step",
    ),
    "an input that its step does not declare": ({"spec.models.0": a_declaring(inputs=["KEY", "NUMKEYS"])}, UNDECLARED),
    "an input that is not connected": ({"spec.models.0": a_declaring(inputs=["KEYS", "NUMKEYS", "MORE"])}, UNDECLARED),
    "an output that its step does not declare": ({"spec.models.0": a_declaring(outputs=["OUTPUT"])}, UNDECLARED),
    "an output that nobody makes": (
        {"spec.ensemble.outputs.0.name": "OTHER"},
        "every output of the ensemble must be a tensor of a step's outputMap",
    ),
    "a tensor that two steps make": (
        {f"{STEPS}.0.outputMap.0.tensor": "DENSE_OUTPUT"},
        "a tensor may be in an outputMap only once",
    ),
    "a tensor that a step makes twice": (
        {f"{STEPS}.0.outputMap": [{"output": name, "tensor": "LOOKUP_VECTORS"} for name in ("OUTPUT0", "OUTPUT1")]},
        "a tensor may be in an outputMap only once",
    ),
    "an input that a step makes": (
        {f"{STEPS}.1.outputMap": [{"output": name, "tensor": name} for name in ("DENSE_OUTPUT", "EMB_KEY")]},
        "must be no input of the ensemble",
    ),
    "a tensor that nobody takes": (
        {f"{STEPS}.1.outputMap": [{"output": name, "tensor": name} for name in ("DENSE_OUTPUT", "MORE")]},
        "leave out an output that nothing uses",
    ),
    "an input that nobody takes": (
        {"spec.ensemble.inputs.0.name": "OTHER"},
        "every input of the ensemble must be a tensor of a step's inputMap",
    ),
    "a search": (
        {"spec.selection.search": {"mode": "Quick"}},
        "search does not support ensembles: set selection.search.mode to None",
    ),
    "unknown type": ({"spec.ensemble.inputs.0.dataType": "FP64"}, "Unsupported value"),
    "no dataloader": ({"spec.dataloader": ...}, "inputs can be generated only for a single model of format onnx"),
    "candidates of tables": ({"spec.models.0.candidates": MANY[:1]}, "format hps takes no candidates: remove them"),
    "tables' options of a model": (
        {"spec.models.1.hps": {"keysPerSample": 2}},
        "the options hps apply only to format hps",
    ),
    "cache of no percent": ({"spec.models.0.hps": {"gpuCachePercent": 0}}, "greater than or equal to 1"),
    "too many combinations": (
        {
            "spec.models.0": BODY["spec"]["models"][1] | {"name": "sparse", "candidates": MANY[:2]},
            "spec.models.1.candidates": MANY,
        },
        "the models' candidates may have at most 16 combinations",
    ),
    "a model of smaller batches": (
        {"spec.ensemble.maxBatchSize": 8, "spec.models.1.config.maxBatchSize": 4},
        "config.maxBatchSize of an ensemble's model must be 0 or at least ensemble.maxBatchSize",
    ),
    "batches beyond the ensemble's": (
        {"spec.ensemble.maxBatchSize": 128},
        "performance.offline.batchSizes must not exceed maxBatchSize",
    ),
    "a step's candidates": (
        {"spec.models.0": STEP | {"candidates": MANY[:1]}},
        "format triton-python takes no candidates: remove them",
    ),
    "a step alone": (
        {"spec.ensemble": ..., "spec.models": [STEP]},
        "several models, or a model of format hps or triton-python, need an ensemble",
    ),
    "a step of a path": (
        {"spec.models.0": {"name": "sparse", "format": "triton-python", "path": "sparse.py"}},
        "hps or triton-python is a Python file: set entrypoint, and remove path",
    ),
    **{
        f"a step's argument with {place}": (
            {"spec.models.0": STEP | {"arguments": {"words": f"{place}/words.txt"}}},
            "arguments of format triton-python are read inside the server, which has neither $(DATASET) nor $(WEIGHTS)",
        )
        for place in ("$(DATASET)", "$(WEIGHTS)")
    },
    **{
        f"a step's argument {name}": (
            {"spec.models.0": STEP | {"arguments": {name: "1"}}},
            "arguments of format triton-python must not have EXECUTION_ENV_PATH",
        )
        for name in (
            "EXECUTION_ENV_PATH",
            "FORCE_CPU_ONLY_INPUT_TENSORS",
            "TRITON_BATCH_STRATEGY_PATH",
            "intra_op_thread_count",
        )
    },
    "a step among bytecode": (
        {"spec.models.0": STEP | {"entrypoint": "steps/__pycache__/sparse.py"}},
        "the file of format triton-python is in a folder __pycache__, of which no server gets anything: move the file",
    ),
    "a step's inputs alone": (
        {"spec.models.0": STEP | {"inputs": TENSORS}},
        "inputs and outputs are declared together: set both, or none",
    ),
    "a step's unknown type": (
        {"spec.models.0": STEP | {"inputs": [TENSORS[0] | {"dataType": "FP64"}], "outputs": TENSORS}},
        "Unsupported value",
    ),
    "inputs of another format": (
        {"spec.models.1.inputs": TENSORS, "spec.models.1.outputs": TENSORS},
        "inputs and outputs are declared only for format triton-python: remove them",
    ),
    "requirements of another format": (
        {"spec.models.1.requirements": "requirements.txt"},
        "requirements of a model are only for format triton-python: set conversion.requirements",
    ),
    "a step's requirements outside the source": (
        {"spec.models.0": STEP | {"requirements": "../requirements.txt"}},
        "in body should match",
    ),
    "a step's requirements for a server of the user's": (
        {"spec.models.0": STEP | {"requirements": "requirements.txt"}, "spec.serving": {"image": "example/mine:1"}},
        "requirements of a model are installed for the installation's own server image: remove serving.image",
    ),
    "paths of another format": (
        {"spec.models.1.mountPath": "/models/dense/1"},
        "mountPath and scratchPaths are for code of format triton-python: remove them",
    ),
    "paths to write to of another format": (
        {"spec.models.1.scratchPaths": ["/cache"]},
        "mountPath and scratchPaths are for code of format triton-python: remove them",
    ),
    **{
        f"a step's folder at {path!r}": ({"spec.models.0": STEP | {"mountPath": path}}, "in body should match")
        for path in ("models", "/", "/models/", "/models/../opt", "/a:b", "/caché", "/a\n", "/a/b/c/d/e/f/g/h/i", "/.a")
    },
    **{
        f"a step that writes to {path}": (
            {"spec.models.0": STEP | {"scratchPaths": ["/cache", path]}},
            "a path must not be in a folder of the system or of the operator",
        )
        for path in ("/opt/tritonserver", "/usr", "/repository/x", "/incoming", "/data", "/dev/shm/x", "/tmp/x")
    },
    "five paths of a step": (
        {"spec.models.0": STEP | {"scratchPaths": ["/a", "/b", "/c", "/d", "/e"]}},
        "must have at most 4 items",
    ),
    "a path of a step twice": ({"spec.models.0": STEP | {"scratchPaths": ["/a", "/a"]}}, "Duplicate value"),
    **{
        f"paths {' and '.join(map(str, (*first, second)))}": (
            {
                "spec.models.0": STEP | {"mountPath": first[0], "scratchPaths": first[1:]},
                "spec.models.1": {**STEP, "name": "dense", **second},
            },
            "no path of mountPath and scratchPaths may be, or lie in, another one of any model",
        )
        for first, second in (
            (["/a", "/a"], {"scratchPaths": ["/b"]}),
            (["/a", "/a/b"], {"scratchPaths": ["/c"]}),
            (["/a/b", "/a"], {"scratchPaths": ["/c"]}),
            (["/a"], {"scratchPaths": ["/a"]}),
            (["/a", "/a"], {"mountPath": "/a"}),
            (["/a"], {"mountPath": "/a"}),
            (["/a"], {"mountPath": "/a/b"}),
            (["/a/b"], {"mountPath": "/a"}),
            (["/a"], {"scratchPaths": ["/b", "/a/b/c"]}),
            (["/a/b", "/c"], {"scratchPaths": ["/a", "/d"]}),
            (["/a", "/b/c/d"], {"scratchPaths": ["/b"]}),
            (["/a", "/b"], {"scratchPaths": ["/b/c"]}),
            (["/a"], {"scratchPaths": ["/b", "/b/c"]}),
            (["/a", "/b", "/b/c"], {"mountPath": "/b/c"}),
            (["/a/b", "/c", "/c/d"], {"scratchPaths": ["/c/d"]}),
            (["/a", "/a/b"], {"scratchPaths": ["/a/b"]}),
        )
    },
    "two frameworks": (
        {
            "spec.models.0": BODY["spec"]["models"][1] | {"name": "sparse", "candidates": MANY[:1]},
            "spec.models.1": FAMILY,
        },
        "one image converts all models of an ensemble",
    ),
}


def test_steps_may_write_to_the_same_directory(kubectl_shared: Kubectl) -> None:
    steps = [STEP | {"scratchPaths": ["/cache", "/a"]}, STEP | {"name": "dense", "scratchPaths": ["/b", "/cache"]}]
    body = changed(BODY, {f"spec.models.{place}": step for place, step in enumerate(steps)})
    kubectl_shared("create", "--validate=strict", "--dry-run=server", "-f", "-", body=body)


def test_a_python_step_declares_its_tensors_or_leaves_that_to_its_class(kubectl_shared: Kubectl) -> None:
    declared = a_declaring() | {"arguments": {"scale": "2", "price": "$(PRICE)"}}
    needing = STEP | {"requirements": "steps/requirements.txt"}
    scratch = ["/models/sparse/12", "/models/s", "/cache", "/optional"]
    fixed = STEP | {"mountPath": "/models/sparse/1", "scratchPaths": scratch}
    for step in (STEP, needing, fixed, declared, declared | {"config": {"parameters": {"intra_op_thread_count": "2"}}}):
        body = changed(BODY, {"spec.models.0": step})
        kubectl_shared("create", "--validate=strict", "--dry-run=server", "-f", "-", body=body)


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_and_why(kubectl_shared: Kubectl, case: str) -> None:
    changes, expected = REFUSED[case]
    message = refusal(kubectl_shared, changed(BODY, changes))
    assert expected in message, message


def test_the_name_is_explained(kubectl: Kubectl) -> None:
    assert "other than those of the models" in kubectl("explain", "td.spec.ensemble.name")
