"""The NetworkPolicy of the Jobs' pods: they run the user's code, so they reach nothing but DNS and their own server."""

from typing import Any

from triton_operator import names
from triton_operator.context import Context


def network_policy(context: Context) -> dict[str, Any]:
    """The NetworkPolicy: no ingress; egress only to DNS and to pods of the same TritonDeployment."""
    own = {"matchLabels": {names.DEPLOYMENT_LABEL: context.name}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": context.metadata(names.network_policy(context.name), "jobs"),
        "spec": {
            "podSelector": own | {"matchExpressions": [{"key": names.STAGE_LABEL, "operator": "Exists"}]},
            "policyTypes": ["Ingress", "Egress"],
            "egress": [
                {"to": [{"podSelector": own}]},
                {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
            ],
        },
    }
