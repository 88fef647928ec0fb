"""Where each field of a KServe InferenceService goes in a TritonDeployment, or why nowhere. Pure."""

from collections.abc import Mapping
from typing import NamedTuple


class Rule(NamedTuple):
    """What becomes of one field."""

    place: str
    """The field of a TritonDeployment, below `spec` unless it begins with `metadata`; ends with `[]`: each item is
    added; empty: there is none."""
    note: str = ""
    """What differs, or what to do instead."""
    needs_hand: bool = False
    """Whether somebody has to do it before the object serves as the InferenceService did."""


NO_FIELD = Rule("", "a TritonDeployment has no such field")
"""The rule of each field that the table does not have."""
MODEL = "predictor.model"
"""How the table writes the predictor's model, whose older names are those of its format, such as `predictor.triton`."""

TABLE: Mapping[str, Rule] = {
    "metadata.name": Rule("metadata.name", "at most 40 characters are left of it"),
    "metadata.namespace": Rule("metadata.namespace"),
    "metadata.labels": Rule("metadata.labels", "without those of Kubernetes and of deployers"),
    "metadata.annotations": Rule("", "an annotation that other tools read in pods goes into `serving.pod.annotations`"),
    "metadata.annotations.serving.kserve.io/storageSecretName": Rule(
        "source.secretRef.name", "the Secret needs the keys of docs/source.md"
    ),
    "metadata.annotations.serving.kserve.io/stop": Rule("serving.replicas", "0 if it is true"),
    "transformer": Rule(
        "", "keep it as a Deployment; let it ask the Service of the object's name, port 8000 or 8001", needs_hand=True
    ),
    "explainer": Rule(
        "", "keep it as a Deployment; let it ask the Service of the object's name, port 8000 or 8001", needs_hand=True
    ),
    "canary": Rule("", "set `serving.route.canary` and `serving.soak` (docs/rollout.md)"),
    f"{MODEL}.modelFormat": Rule(
        "", "a file shows its format; triton, onnx, tensorflow, pytorch, xgboost and lightgbm are taken"
    ),
    f"{MODEL}.storageUri": Rule("source.uri", "pvc, s3, gs, hf and https; a blob of Azure becomes `azure://`"),
    f"{MODEL}.storage": Rule("source.uri", "bucket and path; its key names a login in KServe's own Secret"),
    f"{MODEL}.runtimeVersion": Rule("serving.image", "NVIDIA's image with this tag, from 24.01 on"),
    f"{MODEL}.image": Rule("serving.image", "if it is a tritonserver"),
    f"{MODEL}.runtime": Rule("", "there is one runtime, tritonserver, of the installation's version"),
    f"{MODEL}.protocolVersion": Rule("", "v2 and grpc-v2 are served together, at ports 8000 and 8001; v1 is not"),
    f"{MODEL}.resources": Rule("serving.pod.resources", "GPUs of NVIDIA go into `gpu`, which all Jobs use too"),
    f"{MODEL}.env": Rule("serving.pod.env[]", "literal values; a variable that the operator sets is refused"),
    f"{MODEL}.args": Rule("serving.arguments[]", "those that a spec may have; the operator sets the others"),
    f"{MODEL}.command": Rule("", "the operator starts tritonserver itself"),
    f"{MODEL}.ports": Rule("", "HTTP is always at port 8000, gRPC at 8001, metrics at 8002"),
    f"{MODEL}.name": Rule("", "the container is always named tritonserver"),
    f"{MODEL}.readinessProbe": Rule("", "the operator asks whether the model is ready"),
    f"{MODEL}.livenessProbe": Rule("", "the operator asks whether the server lives"),
    f"{MODEL}.startupProbe": Rule("", "set `serving.progressDeadlineSeconds` for a model that loads slowly"),
    f"{MODEL}.volumeMounts": Rule("", "a server sees only its own files, which `source` names"),
    f"{MODEL}.securityContext": Rule("", "containers have no rights, and a read-only root, in any case"),
    "predictor.storageUris": Rule("", "a source has one URI; `weights` and `dataset` may have others", needs_hand=True),
    "predictor.minReplicas": Rule(
        "serving.autoscaling.minReplicas", "at least 1; `serving.replicas` without a maximum"
    ),
    "predictor.maxReplicas": Rule("serving.autoscaling.maxReplicas", "needs KEDA and Prometheus (docs/scaling.md)"),
    "predictor.scaleTarget": Rule("", "the load at which one replica is saturated is measured"),
    "predictor.scaleMetric": Rule("", "the load at which one replica is saturated is measured"),
    "predictor.scaleMetricType": Rule("", "the load at which one replica is saturated is measured"),
    "predictor.autoScaling": Rule("", "for other metrics, scale the TritonDeployment yourself (docs/scaling.md)"),
    "predictor.containerConcurrency": Rule("", "a queue's length is set in `models[].config.overrides`"),
    "predictor.timeout": Rule("", "set a request's time limit in the client or the Gateway"),
    "predictor.canaryTrafficPercent": Rule("", "set `serving.route.canary` and `serving.soak` (docs/rollout.md)"),
    "predictor.batcher": Rule("models[].config", "Triton's own batcher: `maxBatchSize` and `dynamicBatching`"),
    "predictor.logger": Rule(
        "", "`--log-verbose=1` in `serving.arguments` logs that there was a request, but not what was in it"
    ),
    "predictor.labels": Rule("serving.pod.labels", "without reserved ones"),
    "predictor.annotations": Rule("serving.pod.annotations", "without reserved ones"),
    "predictor.nodeSelector": Rule("pod.nodeSelector", "of all pods; a GPU's product goes into `gpu.product`"),
    "predictor.tolerations": Rule("pod.tolerations[]", "of all pods"),
    "predictor.affinity": Rule("pod.affinity", "of all pods"),
    "predictor.topologySpreadConstraints": Rule(
        "serving.pod.topologySpreadConstraints[]", "the operator selects the pods"
    ),
    "predictor.priorityClassName": Rule("pod.priorityClassName", "of all pods"),
    "predictor.runtimeClassName": Rule("serving.pod.runtimeClassName"),
    "predictor.imagePullSecrets": Rule("pod.imagePullSecrets[]", "of all pods"),
    "predictor.securityContext": Rule(
        "pod.runAsUser", "and `pod.fsGroup`; a pod is as restricted as it can be in any case"
    ),
    "predictor.serviceAccountName": Rule(
        "source.serviceAccountName", "of the source Job alone, if a bucket knows the account (docs/source.md)"
    ),
    "predictor.deploymentStrategy": Rule("", "a new revision replaces the old one once it was measured"),
    "predictor.containers": Rule("", "a server's pod has no other containers"),
    "predictor.initContainers": Rule("", "run a Job that prepares the files (docs/source.md)", needs_hand=True),
    "predictor.volumes": Rule("", "a server sees only its own files, which `source` names"),
    "predictor.workerSpec": Rule("", "a server runs on one node"),
}
"""The rule of each field, by its path below `spec` unless that begins with `metadata`."""
