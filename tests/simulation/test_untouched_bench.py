"""`bench.defaults` asks a server what the operator asks it for an object that says nothing of its load."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.defaults import UNTOUCHED, untouched_request
from hack.imagebuild.pod import Pod
from tests.simulation.test_found_batches import a_graph, served
from tests.simulation.test_found_formats import requests
from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.measurement_requests import ProfileRequest
from triton_converters.contract.results import Tuning


def test_the_sweeps_and_the_configuration_are_those_of_an_untouched_object() -> None:
    cluster = served(a_graph())
    (asked,) = requests(cluster, "profile", ProfileRequest)
    nothing: Any = None
    pod = Pod(Path(), Path(), (8000, 8001, 8002), nothing, Path())
    measured = untouched_request(pod)
    names = {"key", "revision", "reference", "model_name", "keep_outputs", "content", "load"}
    assert replace(measured, **{name: getattr(asked, name) for name in names}) == asked
    assert measured.load.measurement == asked.load.measurement
    assert measured.load.protocol == asked.load.protocol
    (convert,) = requests(cluster, "convert", ConvertRequest)
    config, largest = convert.config, convert.model.max_batch_size
    assert (
        Tuning(
            largest,
            config.instances,
            config.dynamic_batching,
            config.preferred_batch_sizes,
            config.max_queue_delay_microseconds,
            config.cuda_graphs,
        )
        == UNTOUCHED
    )
