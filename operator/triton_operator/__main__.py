"""`python -m triton_operator`: run the operator until it is told to stop. settings.py reads its environment."""

import gc
import logging
import os
import sys
from socket import gethostname

import kopf

from triton_operator.runtime import handlers
from triton_operator.runtime.controller import Controller
from triton_operator.runtime.log_fields import FieldsFilter
from triton_operator.runtime.metrics import Metrics, serve
from triton_operator.runtime.printable_log import protect
from triton_operator.settings import Settings, SettingsError


def main() -> None:
    """Read the environment, serve metrics and probes, and run kopf in this thread."""
    try:
        # Outside of a pod, the machine's name tells the replicas apart.
        settings = Settings.from_environment({"POD_NAME": gethostname(), **os.environ})
    except SettingsError as error:
        sys.exit(f"triton-operator: {error}; the chart sets it")
    log_format = kopf.LogFormat.JSON if settings.log_format == "json" else kopf.LogFormat.FULL
    # kopf's reference to an object has several fields; by default it has the name of our field with the object's name.
    kopf.configure(log_format=log_format, log_refkey="reference")
    protect(logging.getLogger())
    for handler in logging.getLogger().handlers:
        handler.addFilter(FieldsFilter())
    # kopf would log that the handler succeeded, for every event.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    metrics = Metrics()
    controller = Controller(settings, metrics)
    # Imported objects stay for ever; scanning them again would cost the garbage collector tens of milliseconds.
    gc.freeze()
    serve(
        settings.metrics_port,
        metrics,
        alive=controller.not_alive,
        ready=controller.not_ready,
        detail=controller.unlisted,
    )
    kopf.run(registry=handlers.registry(controller), standalone=True, clusterwide=True)


if __name__ == "__main__":
    main()
