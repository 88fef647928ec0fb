"""Backends `onnxruntime`, `pytorch` and `hps` of a tritonserver for CPUs, on Triton's Python backend.

They serve the config.pbtxt and the files that NVIDIA's native backends of these names serve, with the same
checks, and where it matters the same messages; their sources are github.com/triton-inference-server's
onnxruntime_backend and pytorch_backend, release 24.10 and later, and hugectr_backend's hps_backend, release 23.09.
What they do not serve is refused when the model is loaded: sequence batching, batch inputs and outputs, ragged
batches, custom operators, BF16, and by `pytorch` also strings, which the native one passes as List[str].
`execution_accelerators` for GPUs are ignored with a warning, as a build of the native backends without GPU ignores
them; those for CPUs are refused, as a build without OpenVINO refuses them. A string that is not UTF-8 is refused with
its request; the native backend passes it on. Only here: each instance gets an equal share of the container's cores,
unless the thread count is configured. On a GPU, which `kubectl triton check` may have, `pytorch` computes by
whatever PyTorch it finds; `onnxruntime` refuses one.
"""
