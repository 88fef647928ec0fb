"""What the cluster needs inside the API: rights of our processes, and storage on demand."""

import json
from pathlib import Path
from typing import Any

from hack.devcluster.addresses import BUSYBOX_IMAGE
from hack.devcluster.paths import ClusterPaths
from hack.devcluster.process import Daemon

STORAGE_NAMESPACE = "local-path-storage"
STORAGE_USER = "local-path-provisioner"
STORAGE_ACCOUNT = "local-path-provisioner-service-account"
STORAGE_CONFIGURATION = "local-path-config"
STORAGE_CLASS = "standard"
SHARED_STORAGE_CLASS = "local-path-shared"
"""The StorageClass whose claims may be ReadWriteMany: all nodes see one folder of the machine."""
PROVISIONER = "rancher.io/local-path"
DNS_USER = "coredns"
POLICY_USER = "network-policies"
SETUP = '#!/bin/sh\nset -eu\nmkdir -m 0777 -p "$VOL_DIR"\n'
"""Open to all, as upstream's: a volume on the host's disk takes no fsGroup from the kubelet."""
TEARDOWN = '#!/bin/sh\nset -eu\nrm -rf "$VOL_DIR"\n'
Manifest = dict[str, Any]


def manifests(paths: ClusterPaths) -> Manifest:
    """Everything applied after the API server starts, as one List."""
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            *_rights(
                DNS_USER,
                [
                    _rule([""], ["services", "namespaces", "pods", "endpoints"], "list", "watch"),
                    _rule(["discovery.k8s.io"], ["endpointslices"], "list", "watch"),
                ],
            ),
            *_rights(
                POLICY_USER,
                [
                    _rule([""], ["namespaces", "pods"], "list", "watch"),
                    _rule(["networking.k8s.io"], ["networkpolicies"], "list", "watch"),
                ],
            ),
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": STORAGE_NAMESPACE}},
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": STORAGE_ACCOUNT, "namespace": STORAGE_NAMESPACE},
                "automountServiceAccountToken": False,
            },
            *_rights(STORAGE_USER, _storage_rules()),
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": STORAGE_CONFIGURATION, "namespace": STORAGE_NAMESPACE},
                "data": _storage_configuration(paths),
            },
            _storage_class(STORAGE_CLASS, {"storageclass.kubernetes.io/is-default-class": "true"}),
            _storage_class(SHARED_STORAGE_CLASS, {}),
        ],
    }


def _storage_class(name: str, annotations: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def local_path_provisioner(program: Path, paths: ClusterPaths) -> Daemon:
    """Makes a folder for each claim, through a helper pod; its settings are in a ConfigMap."""
    argv = [
        str(program),
        "start",
        f"--provisioner-name={PROVISIONER}",
        f"--helper-image={BUSYBOX_IMAGE}",
        f"--kubeconfig={paths.configuration / 'local-path-provisioner.kubeconfig'}",
        f"--namespace={STORAGE_NAMESPACE}",
        f"--configmap-name={STORAGE_CONFIGURATION}",
        f"--service-account-name={STORAGE_ACCOUNT}",
    ]
    return Daemon("local-path-provisioner", argv)


def _storage_configuration(paths: ClusterPaths) -> dict[str, str]:
    own = {"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": [str(paths.storage)]}]}
    shared = {"sharedFileSystemPath": str(paths.shared_storage)}
    classes = {STORAGE_CLASS: own, SHARED_STORAGE_CLASS: shared}
    container = {"name": "helper-pod", "image": BUSYBOX_IMAGE, "imagePullPolicy": "Never"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "helper-pod"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    return {
        "config.json": json.dumps({"storageClassConfigs": classes}, indent=2),
        "setup": SETUP,
        "teardown": TEARDOWN,
        "helperPod.yaml": json.dumps(pod, indent=2),
    }


def _storage_rules() -> list[Manifest]:
    every = ("get", "list", "watch", "create", "update", "patch", "delete")
    return [
        _rule([""], ["nodes", "persistentvolumeclaims", "configmaps", "pods/log"], "get", "list", "watch"),
        _rule([""], ["persistentvolumes", "pods", "events", "endpoints"], *every),
        _rule(["storage.k8s.io"], ["storageclasses"], "get", "list", "watch"),
        _rule(["coordination.k8s.io"], ["leases"], *every),
    ]


def _rule(groups: list[str], resources: list[str], *verbs: str) -> Manifest:
    return {"apiGroups": groups, "resources": resources, "verbs": list(verbs)}


def _rights(user: str, rules: list[Manifest]) -> list[Manifest]:
    """A ClusterRole and its binding to the user a certificate names."""
    name = f"devcluster:{user}"
    group = "rbac.authorization.k8s.io"
    metadata = {"name": name}
    return [
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        },
    ]
