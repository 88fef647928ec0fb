"""The Service that clients use, and the preview Service of the target revision."""

from typing import Any

from triton_operator import names
from triton_operator.api.status import Endpoint
from triton_operator.context import Context
from triton_operator.resources.server import GRPC_PORT, HTTP_PORT, METRICS_PORT, PORTS

H2C = "kubernetes.io/h2c"


def service(context: Context, server_name: str) -> dict[str, Any]:
    """The main Service. Its selector decides which revision is active."""
    return _service(context, context.name, "service", server_name)


def preview_service(context: Context, server_name: str) -> dict[str, Any]:
    """The preview Service of the target revision.

    A client stays with one pod, whatever it does: perf_analyzer subtracts counters that it read from the server before
    each window, and has to reconnect meanwhile. Gateways send requests to the pods themselves.
    """
    made = _service(context, names.preview(context.name), "preview", server_name)
    return {**made, "spec": {**made["spec"], "sessionAffinity": "ClientIP"}}


def endpoint(context: Context) -> Endpoint:
    """The addresses for clients inside the cluster."""
    host = f"{context.name}.{context.namespace}.svc"
    return Endpoint(
        http=f"http://{host}:{HTTP_PORT}", grpc=f"{host}:{GRPC_PORT}", metrics=f"http://{host}:{METRICS_PORT}/metrics"
    )


def _port(context: Context, name: str, number: int) -> dict[str, Any]:
    """A port of a Service. With a route, gateways must know that gRPC is HTTP/2 without TLS."""
    protocol = {"appProtocol": H2C} if number == GRPC_PORT and context.spec.serving.route is not None else {}
    return {"name": name, "port": number, "targetPort": name, **protocol}


def _service(context: Context, name: str, component: str, server_name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": context.metadata(name, component),
        "spec": {
            "selector": names.server_pods(context.name, server_name),
            "ports": [_port(context, port, number) for port, number in PORTS.items()],
        },
    }
