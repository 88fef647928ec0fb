"""The HTTPRoute that leads requests to the main Service and, while there is a canary, a share of them to the preview's.

One HTTPRoute serves both protocols, because a host name may not have an HTTPRoute and a GRPCRoute: gRPC's requests are
those whose paths begin with the names of Triton's gRPC services. Pure.
"""

from typing import Any

from triton_operator import names
from triton_operator.api.gateway import Route
from triton_operator.context import Context
from triton_operator.resources.server import GRPC_PORT, HTTP_PORT

HTTP_PATHS = ("/v2",)
"""Where all paths of Triton's HTTP protocol begin."""
GRPC_PATHS = ("/inference.GRPCInferenceService", "/grpc.health.v1.Health")


def http_route(context: Context, route: Route, share: int) -> dict[str, Any]:
    """The HTTPRoute, whose name is the TritonDeployment's. ``share``: percent of the requests for the preview Service.

    With a canary in the spec, the preview Service is named all the time, so that a gateway knows it before its share
    begins.
    """
    return {
        "apiVersion": names.GATEWAY_API_VERSION,
        "kind": names.HTTP_ROUTE,
        "metadata": context.metadata(context.name, "route"),
        "spec": {
            "parentRefs": [
                {
                    "name": each.name,
                    **({"namespace": each.namespace} if each.namespace else {}),
                    **({"sectionName": each.section_name} if each.section_name else {}),
                }
                for each in route.parent_refs
            ],
            **({"hostnames": list(route.hostnames)} if route.hostnames else {}),
            "rules": [
                _rule(context, GRPC_PATHS, GRPC_PORT, share if route.canary else None),
                _rule(context, HTTP_PATHS, HTTP_PORT, share if route.canary else None),
            ],
        },
    }


def _rule(context: Context, paths: tuple[str, ...], port: int, share: int | None) -> dict[str, Any]:
    """A rule of paths. ``share``: that of the preview Service; None: it is not named."""
    weights = {context.name: 100} if share is None else {context.name: 100 - share, names.preview(context.name): share}
    return {
        "matches": [{"path": {"type": "PathPrefix", "value": path}} for path in paths],
        "backendRefs": [{"name": name, "port": port, "weight": weight} for name, weight in weights.items()],
    }
