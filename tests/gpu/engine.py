"""An engine on the GPU, called with NumPy arrays: what TensorRT does without a server in front of it."""

import time
from collections.abc import Mapping
from typing import Any

import numpy

from triton_converters.convert.tensorrt_library import Library

Arrays = Mapping[str, numpy.ndarray[Any, Any]]


class Engine:
    """One execution context; every call copies inputs to PyTorch's memory on the GPU, runs, and copies outputs back."""

    def __init__(self, library: Library, torch: Any, plan: bytes) -> None:
        trt = library.module
        self.trt, self.torch = trt, torch
        self.runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
        self.engine = self.runtime.deserialize_cuda_engine(plan)
        assert self.engine is not None, "TensorRT cannot read the engine it has built"
        self.context = self.engine.create_execution_context()
        self.stream = torch.cuda.Stream()

    def __call__(self, inputs: Arrays) -> dict[str, Any]:
        """Outputs by name; their shapes must follow from the inputs'."""
        torch = self.torch
        with torch.cuda.stream(self.stream):
            given = {name: torch.from_numpy(numpy.ascontiguousarray(each)).cuda() for name, each in inputs.items()}
            for name, tensor in given.items():
                shape = tuple(tensor.shape)
                assert self.context.set_input_shape(name, shape), f"{name}: {shape} is outside the profile"
            outputs = {name: self._empty(name) for name in self._output_names()}
            for name, tensor in {**given, **outputs}.items():
                assert self.context.set_tensor_address(name, tensor.data_ptr())
            assert self.context.execute_async_v3(self.stream.cuda_stream), "TensorRT did not run the engine"
            return {name: tensor.cpu().numpy() for name, tensor in outputs.items()}

    def latencies(self, inputs: Arrays, calls: int) -> list[float]:
        """Seconds of each of ``calls`` calls, one after the other, after some to warm up."""
        for _ in range(10):
            self(inputs)
        seconds = []
        for _ in range(calls):
            started = time.perf_counter()
            self(inputs)
            seconds.append(time.perf_counter() - started)
        return seconds

    def _output_names(self) -> list[str]:
        names = [self.engine.get_tensor_name(index) for index in range(self.engine.num_io_tensors)]
        return [name for name in names if self.engine.get_tensor_mode(name) == self.trt.TensorIOMode.OUTPUT]

    def _empty(self, name: str) -> Any:
        like = self.torch.from_numpy(numpy.empty(0, self.trt.nptype(self.engine.get_tensor_dtype(name))))
        return self.torch.empty(tuple(self.context.get_tensor_shape(name)), dtype=like.dtype, device="cuda")
