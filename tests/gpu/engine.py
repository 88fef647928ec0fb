"""An engine on the GPU, called with NumPy arrays: what TensorRT does without a server in front of it."""

import time
from collections.abc import Mapping
from typing import Any

import numpy

from triton_converters.convert.tensorrt_library import Library

Arrays = Mapping[str, numpy.ndarray[Any, Any]]


class Engine:
    """One execution context; every call copies inputs to the GPU, runs, and copies outputs back."""

    def __init__(self, library: Library, cudart: Any, plan: bytes) -> None:
        trt = library.module
        self.trt, self.cudart = trt, cudart
        self.runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
        self.engine = self.runtime.deserialize_cuda_engine(plan)
        assert self.engine is not None, "TensorRT cannot read the engine it has built"
        self.context = self.engine.create_execution_context()
        self.stream = self._done(cudart.cudaStreamCreate())
        self.buffers: dict[str, tuple[int, int]] = {}
        """Address on the GPU and size in bytes by tensor."""

    def __call__(self, inputs: Arrays) -> dict[str, Any]:
        """Outputs by name; their shapes must follow from the inputs'."""
        copy, kinds = self.cudart.cudaMemcpyAsync, self.cudart.cudaMemcpyKind
        arrays = {name: numpy.ascontiguousarray(array) for name, array in inputs.items()}
        for name, array in arrays.items():
            assert self.context.set_input_shape(name, array.shape), f"{name}: {array.shape} is outside the profile"
            address = self._buffer(name, array.nbytes)
            self._done(copy(address, array.ctypes.data, array.nbytes, kinds.cudaMemcpyHostToDevice, self.stream))
        outputs = {}
        for index in range(self.engine.num_io_tensors):
            name = self.engine.get_tensor_name(index)
            if self.engine.get_tensor_mode(name) == self.trt.TensorIOMode.OUTPUT:
                shape = tuple(self.context.get_tensor_shape(name))
                outputs[name] = numpy.empty(shape, self.trt.nptype(self.engine.get_tensor_dtype(name)))
                self._buffer(name, outputs[name].nbytes)
        assert self.context.execute_async_v3(self.stream), "TensorRT did not run the engine"
        for name, array in outputs.items():
            address, _ = self.buffers[name]
            self._done(copy(array.ctypes.data, address, array.nbytes, kinds.cudaMemcpyDeviceToHost, self.stream))
        self._done(self.cudart.cudaStreamSynchronize(self.stream))
        return outputs

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

    def _buffer(self, name: str, size: int) -> int:
        """A buffer of at least that size, bound to the tensor."""
        address, held = self.buffers.get(name, (0, 0))
        if held < size:
            if address:
                self._done(self.cudart.cudaFree(address))
            address = int(self._done(self.cudart.cudaMalloc(size)))
            self.buffers[name] = address, size
        assert self.context.set_tensor_address(name, address)
        return address

    def _done(self, answer: Any) -> Any:
        """What a CUDA call gives beside its status; fails where that is an error."""
        status, *values = answer
        assert int(status) == 0, self.cudart.cudaGetErrorString(status)
        return values[0] if values else None
