"""A step whose answer the first number of a request chooses: what the user's files get wrong."""

import os
import resource
import signal
import sys
import time

import numpy as np
import triton_python_backend_utils as pb_utils


def answer(y, t=None, *more):
    t = np.full((len(np.atleast_1d(y)), 1), b"t", dtype=object) if t is None else t
    return pb_utils.InferenceResponse([pb_utils.Tensor("y", y), pb_utils.Tensor("t", t), *more])


def eat(x):
    resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
    return answer(np.ones((2**40, 2), np.float32))


def hang(x):
    time.sleep(20)


FAULTS = {
    0: answer,
    1: lambda x: None,
    2: lambda x: answer(np.concatenate([x, x])),
    3: lambda x: pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]),
    4: lambda x: answer(x.astype(np.float64)),
    5: lambda x: answer(np.zeros((len(x), 3), np.float32)),
    6: lambda x: int("picture"),
    7: lambda x: sys.exit(3),
    8: lambda x: x,
    9: lambda x: answer(x, np.array([[None]] * len(x), dtype=object)),
    10: lambda x: answer(np.array(1, np.float32)),
    11: lambda x: answer(x, None, pb_utils.Tensor("y", x)),
    12: lambda x: pb_utils.InferenceResponse(error=pb_utils.TritonError("the user's own words")),
    13: eat,
    14: lambda x: os._exit(5),
    15: lambda x: os.kill(os.getpid(), signal.SIGKILL),
    16: hang,
    17: lambda x: answer(x, np.full(len(x), b"t", dtype=object)),
}


class TritonPythonModel:
    def execute(self, requests):
        arrays = [request.inputs()[0].as_numpy() for request in requests]
        return [FAULTS[int(array[0, 0])](array) for array in arrays]
