"""A model instance as Triton's Python backend drives it; importable only in the server's stub process."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import triton_python_backend_utils as pb_utils

from triton_cpu import batch, exchange
from triton_cpu.batch import Arrays, BatchError
from triton_cpu.calls import CallCounter
from triton_cpu.config import Config, ModelError, parse
from triton_cpu.guarding import Guarding
from triton_cpu.session import Log, RunError, Session

METRIC = "triton_cpu_runtime_calls"


class Instance:
    """Joins the requests of one execution into one call of the runtime, and splits its outputs."""

    load: ClassVar[Callable[[Config, Log], Session]]
    joins: ClassVar[bool] = True
    """Whether requests share a call of the runtime; one that does not returns outputs that are not split either."""

    def initialize(self, arguments: Mapping[str, str]) -> None:
        """Load the model. Raises TritonModelException, which makes the server refuse the model."""
        try:
            config = parse(arguments)
            self._session = type(self).load(config, pb_utils.Logger.log_warn)
        except ModelError as error:
            raise pb_utils.TritonModelException(str(error)) from error
        self._batched = self.joins and config.max_batch_size > 0
        self._name = arguments["model_instance_name"]
        self._metrics = pb_utils.MetricFamily(
            name=METRIC,
            description="Calls of the runtime (ONNX Runtime or PyTorch) by a model instance",
            kind=pb_utils.MetricFamily.COUNTER,
        )
        labels = {"model": config.name, "version": config.version, "instance": self._name}
        self._metric = self._metrics.Metric(labels=labels)
        self._calls = CallCounter(self._metric.increment)
        self._guarding = Guarding(self._name)

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer the requests, in their order.

        Triton counts an error in a response as a success. An exception, which is everybody's answer, it counts as what
        it is; so if the runtime failed for all of the requests, that is raised.
        """
        responses: list[Any] = [None] * len(requests)
        readable: dict[int, Arrays] = {}
        for number, request in enumerate(requests):
            try:
                readable[number] = {tensor.name(): exchange.received(tensor) for tensor in request.inputs()}
            except RunError as error:
                responses[number] = error
        numbers, inputs = list(readable), list(readable.values())
        for group in batch.groups(inputs, self._batched):
            for index, response in zip(group, self._answer([inputs[index] for index in group]), strict=True):
                responses[numbers[index]] = response
        if all(map(_is_failure, responses)):
            raise pb_utils.TritonModelException(str(responses[0]))
        return [_failed(each) if isinstance(each, RunError | BatchError) else each for each in responses]

    def finalize(self) -> None:
        """Report the last calls before the instance is unloaded."""
        self._guarding.close()
        self._calls.close()
        pb_utils.Logger.log_info(f"instance '{self._name}': {self._calls.total} calls of the runtime")

    def _answer(self, inputs: list[Arrays]) -> list[Any]:
        """Call the runtime once for requests that can share a call; return a response for each, or the error."""
        try:
            self._calls.count()
            outputs = self._session.run(batch.join(inputs))
            parts = batch.split(outputs, batch.sizes(inputs)) if self._batched else [outputs]
        except (RunError, BatchError) as error:
            return [error] * len(inputs)
        return [
            pb_utils.InferenceResponse([exchange.sent(name, array) for name, array in part.items()]) for part in parts
        ]


def _is_failure(answer: Any) -> bool:
    """Whether the runtime failed. What the client did wrong is no failure of the model."""
    return isinstance(answer, BatchError) or (isinstance(answer, RunError) and not answer.invalid)


def _failed(error: RunError | BatchError) -> Any:
    invalid = isinstance(error, RunError) and error.invalid
    code = pb_utils.TritonError.INVALID_ARG if invalid else pb_utils.TritonError.INTERNAL
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error), code))
