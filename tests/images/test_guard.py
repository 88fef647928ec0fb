"""A model instance whose process dies ends the server, so that the kubelet starts it again; nothing else does."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton
from google.protobuf import json_format

from tests.images.server import ROOT, Server, offspring, wait_ready
from triton_operator.resources.server import COMPLETE

pytestmark = pytest.mark.images

MODEL = "onnxruntime_instances"
"""It has two instances."""
PATIENCE_SECONDS = 20
START = ROOT / "images" / "tritonserver-cpu" / "start.sh"


def named(server: Server, program: str) -> list[int]:
    """Processes below the server's whose command line has a word that ends so."""
    found = []
    for each in offspring(server.process.pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            words = Path(f"/proc/{each}/cmdline").read_bytes().decode(errors="replace").split("\0")
            found += [each] if any(word.endswith(program) for word in words) else []
    return found


def stubs(server: Server) -> list[int]:
    return named(server, "triton_python_backend_stub")


def guards(server: Server) -> list[int]:
    return named(server, "guard.py")


@pytest.fixture
def explicit(repositories: Path, start: Callable[..., Server]) -> Server:
    """A server with one model, which may be unloaded."""
    flags = ("--model-control-mode=explicit", f"--load-model={MODEL}", "--exit-timeout-secs=30", COMPLETE)
    return wait_ready(start(repositories / "good", *flags))


def eventually_has(server: Server, instances: int) -> None:
    """Wait until the server has that many instances, each with a guard."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := (len(stubs(server)), len(guards(server)))) != (instances, instances):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def ask(server: Server) -> None:
    """One request, which is answered."""
    rows = np.ones((1, 4), np.float32)
    given = triton.InferInput("x", rows.shape, "FP32")
    given.set_data_from_numpy(rows)
    server.client().infer(MODEL, [given])


def test_a_process_that_dies_ends_the_server(explicit: Server) -> None:
    ask(explicit)
    victim, _ = stubs(explicit)
    assert len(guards(explicit)) == 2
    killed = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    assert explicit.process.wait(PATIENCE_SECONDS) != 0
    assert time.monotonic() - killed < PATIENCE_SECONDS, "it does not wait for requests, which nobody answers"
    assert f"the process of model instance '{MODEL}_0_" in explicit.log()


def test_a_model_that_is_unloaded_or_loaded_anew_does_not(explicit: Server) -> None:
    client = explicit.client()
    before = set(stubs(explicit))
    client.load_model(MODEL, config=client_config(client, instances=1))
    ask(explicit)
    # What is replaced ends once its requests are answered.
    eventually_has(explicit, 1)
    assert not before & set(stubs(explicit))
    client.unload_model(MODEL)
    eventually_has(explicit, 0)
    client.load_model(MODEL)
    ask(explicit)
    assert explicit.process.poll() is None
    assert "died" not in explicit.log()


def test_a_normal_stop_does_not(explicit: Server) -> None:
    ask(explicit)
    assert explicit.stop(60) == 0
    assert "died" not in explicit.log()


def client_config(client: triton.InferenceServerClient, instances: int) -> str:
    """The model's configuration with another number of instances, as JSON."""
    config = client.get_model_config(MODEL).config
    config.instance_group[0].count = instances
    return json_format.MessageToJson(config, preserving_proto_field_name=True)


def test_what_a_killed_server_left_in_shared_memory_is_gone_before_the_next_one(tmp_path: Path) -> None:
    left, others = tmp_path / "triton_onnxruntime_backend_shm_region_1", tmp_path / "perf_analyzer_input"
    for each in (left, others):
        each.touch()
    bind = f'mount --bind {tmp_path} /dev/shm && exec "$@"'
    subprocess.run(["unshare", "--mount", "sh", "-c", bind, "sh", str(START), "true"], check=True)
    assert (left.exists(), others.exists()) == (False, True)
