"""The NetworkPolicies of the Jobs' pods. Some run the user's code, and only one stage needs the network."""

from typing import Any

from triton_operator import names
from triton_operator.context import Context


def network_policies(context: Context) -> list[dict[str, Any]]:
    """The NetworkPolicies: no Job's pod is reached or reaches anything, but `measure` reaches DNS and the servers.

    Policies add up. A private server and its client share a pod, and talk over its loopback interface.
    """
    own = {names.DEPLOYMENT_LABEL: context.name}
    jobs = {"matchLabels": own, "matchExpressions": [{"key": names.STAGE_LABEL, "operator": "Exists"}]}
    servers = {"matchLabels": own, "matchExpressions": [{"key": names.REVISION_LABEL, "operator": "Exists"}]}
    egress = [
        {"to": [{"podSelector": servers}]},
        {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
    ]
    return [
        _policy(context, names.network_policy(context.name), podSelector=jobs, policyTypes=["Ingress", "Egress"]),
        _policy(
            context,
            names.measure_policy(context.name),
            podSelector={"matchLabels": own | {names.STAGE_LABEL: "measure"}},
            policyTypes=["Egress"],
            egress=egress,
        ),
    ]


def _policy(context: Context, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": context.metadata(name, "jobs"),
        "spec": spec,
    }
