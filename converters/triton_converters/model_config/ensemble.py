"""An ensemble's config.pbtxt: how its tensors flow, in Triton's own protobuf message. Pure."""

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from triton_converters.contract.conversion_requests import EnsembleCode
from triton_converters.model_config.model import input_message, output_message

LATEST = -1
"""model_version of a step; a revision has one version of each model."""


def render_ensemble(code: EnsembleCode, max_batch_size: int) -> str:
    """Return the text of config.pbtxt. An ensemble has neither file nor instances; its version directory is empty."""
    steps = [
        model_config_pb2.ModelEnsembling.Step(
            model_name=step.model, model_version=LATEST, input_map=dict(step.inputs), output_map=dict(step.outputs)
        )
        for step in code.steps
    ]
    message = model_config_pb2.ModelConfig(
        platform="ensemble",
        max_batch_size=max_batch_size,
        input=[input_message(tensor) for tensor in code.inputs],
        output=[output_message(tensor) for tensor in code.outputs],
        ensemble_scheduling=model_config_pb2.ModelEnsembling(step=steps),
    )
    return str(text_format.MessageToString(message))
