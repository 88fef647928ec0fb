"""The controllers and the kubelet that an API server alone lacks: Jobs end at once, servers get ready at once."""

import json
import threading
from datetime import UTC, datetime
from typing import Any, Self

from kubernetes import client, config
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

from tests.apiserver.kubectl import Kubectl
from tests.simulation.answers import GOOD, message
from triton_converters.contract.stages import STAGES
from triton_operator import names

JSON = dict[str, Any]


class Node:
    """Between entry and exit of the block, Jobs of one namespace end with the answers of tests/simulation."""

    def __init__(self, kubectl: Kubectl) -> None:
        settings = client.Configuration()
        config.load_kube_config(str(kubectl.kubeconfig), client_configuration=settings)
        dynamic = DynamicClient(client.ApiClient(settings))
        self._namespace = kubectl.namespace
        self._jobs = dynamic.resources.get(api_version="batch/v1", kind="Job")
        self._pods = dynamic.resources.get(api_version="v1", kind="Pod")
        self._deployments = dynamic.resources.get(api_version="apps/v1", kind="Deployment")
        self.script = GOOD
        """How all Jobs fare."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.ended: list[str] = []
        """Stage, and candidate where there is one, of the Jobs that ended."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            try:
                self._turn()
            except (ConflictError, NotFoundError):
                # Changed or deleted since it was listed: the next turn sees what it is now.
                continue

    def _turn(self) -> None:
        for job in self._list(self._jobs):
            if not job.get("status", {}).get("conditions"):
                self._end(job)
        for server in self._list(self._deployments):
            replicas, status = server["spec"]["replicas"], server.get("status", {})
            if status.get("observedGeneration") != server["metadata"]["generation"]:
                server["status"] = {
                    "observedGeneration": server["metadata"]["generation"],
                    "replicas": replicas,
                    "updatedReplicas": replicas,
                    "readyReplicas": replicas,
                    "availableReplicas": replicas,
                }
                self._deployments.status.replace(body=server, namespace=self._namespace)

    def _end(self, job: JSON) -> None:
        labels, template = job["metadata"]["labels"], job["spec"]["template"]
        *_, stage, request = template["spec"]["containers"][0]["args"]
        candidate = labels.get(names.CANDIDATE_LABEL, "")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"]}
        metadata = {
            "generateName": f"{job['metadata']['name']}-",
            "labels": template["metadata"]["labels"],
            "ownerReferences": [{**owner, "uid": job["metadata"]["uid"], "controller": True}],
        }
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        pod = self._pods.create(body=body, namespace=self._namespace).to_dict()
        terminated = {
            "exitCode": 0,
            "reason": "Completed",
            "message": message(stage, candidate, STAGES[stage].request.from_json(request), self.script),
            "startedAt": now,
            "finishedAt": now,
        }
        pod["status"] = {
            "phase": "Succeeded",
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": {"terminated": terminated},
                }
                for container in pod["spec"]["containers"]
            ],
        }
        self._pods.status.replace(body=pod, namespace=self._namespace)
        condition = {"status": "True", "reason": "CompletionsReached", "lastTransitionTime": now, "lastProbeTime": now}
        job["status"] = {
            "startTime": now,
            "completionTime": now,
            "succeeded": 1,
            "conditions": [{**condition, "type": "SuccessCriteriaMet"}, {**condition, "type": "Complete"}],
        }
        self._jobs.status.replace(body=job, namespace=self._namespace)
        self.ended.append(f"{stage} {candidate}".strip())

    def _list(self, resource: Any) -> list[JSON]:
        response = resource.get(namespace=self._namespace, serialize=False)
        found = json.loads(response.data)
        return [{"apiVersion": found["apiVersion"], "kind": found["kind"][:-4], **item} for item in found["items"]]
