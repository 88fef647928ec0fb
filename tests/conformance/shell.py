"""Small pods of the shell that between them reach every row of a kubelet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.cases import CONFINED, SYSTEM, USER, Body, Case

LOG = "${TERMINATION_LOG:-/dev/termination-log}"
"""Where a program leaves its termination message, by any kubelet."""
VIEW = Path(__file__).with_name("view.sh").read_text(encoding="utf-8")
FOREVER = "while :; do sleep 0.2; done"
DATA = {"a": "of a\n", "b": "of b\n"}
"""What each ConfigMap and Secret that exists holds."""
EXISTING = "existing"
"""The claim, ConfigMap and Secret that there are."""


def container(script: str, name: str = "main", **fields: Any) -> Body:
    """A container that runs a script."""
    return {
        "name": name,
        "image": SYSTEM,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
        "securityContext": CONFINED,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **fields,
    }


def sidecar(script: str, name: str = "sidecar", **fields: Any) -> Body:
    """A container that runs beside those after it."""
    return container(script, name, restartPolicy="Always", **fields)


def a_job(*containers: Body, **fields: Any) -> Body:
    """The spec of a pod of a Job; its last container is the main one."""
    *init, main = containers
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {**USER, "seccompProfile": {"type": "RuntimeDefault"}},
        "terminationGracePeriodSeconds": 2,
        **({"initContainers": init} if init else {}),
        "containers": [main],
        **fields,
    }


def a_server(*containers: Body, **fields: Any) -> Body:
    """The spec of a pod of a Deployment."""
    return a_job(*containers, **fields) | {"restartPolicy": "Always"}


def volume(name: str, **source: Any) -> Body:
    """A volume of a pod."""
    return {"name": name, **source}


def mounted(name: str, path: str, **fields: Any) -> Body:
    """A volume's place in a container."""
    return {"name": name, "mountPath": path, **fields}


def told(script: str, **fields: Any) -> Body:
    """A container whose termination message is what a script prints."""
    return container(f"{{ {script}\n}} >{LOG} 2>&1", **fields)


def viewing(*mounts: Body, **fields: Any) -> Body:
    """A container that tells what it sees."""
    paths = [each["mountPath"] for each in mounts]
    return container("", **{"command": ["sh", "-c", VIEW, "view", *paths], "volumeMounts": [*mounts], **fields})


SHARED = {"volumes": [volume("shared", emptyDir={})]}
AT_SHARED = {"volumeMounts": [mounted("shared", "/shared")]}
CLAIM = volume("claim", persistentVolumeClaim={"claimName": EXISTING})
READ_ONLY_CLAIM = volume("claim", persistentVolumeClaim={"claimName": EXISTING, "readOnly": True})
KEYS = volume("keys", configMap={"name": EXISTING})
ITEMS = volume("keys", configMap={"name": EXISTING, "items": [{"key": "b", "path": "folder/c"}]})
SECRET = volume("secret", secret={"secretName": EXISTING})
EVERY_SECOND = {"periodSeconds": 1, "timeoutSeconds": 20}
UP = "touch /shared/up"
WAITS_UNTIL_UP = "until test -e /shared/up; do sleep 0.1; done"
NEVER_UP = {"exec": {"command": ["false"]}, **EVERY_SECOND, "failureThreshold": 2}
SERVES = """
import http.server, os, socket
host = os.environ['ADDRESS']
host = socket.gethostbyname('localhost') if host == '127.0.0.1' else host
http.server.test(http.server.SimpleHTTPRequestHandler, port=8123, bind='0.0.0.0' if host == '127.0.0.1' else host)
"""
"""Of a network that others share, a server takes its own address alone. Plain replaces addresses in double quotes."""


def serving(name: str = "main", *, after: float = 0, **fields: Any) -> Body:
    """A container with an HTTP server, which answers after so many seconds."""
    ports = [{"name": "http", "containerPort": 8123}]
    command = ["sh", "-c", f'cd /tmp; sleep {after}; exec python3 -c "$0"', SERVES]
    environment = [{"name": "ADDRESS", "value": "127.0.0.1"}]
    return container("", name, **{"command": command, "env": environment, "ports": ports, **fields})


def http(**fields: Any) -> Body:
    """A probe of that server."""
    return {"httpGet": {"path": "/", "port": "http"}, **EVERY_SECOND, **fields}


SPECS: dict[str, Body] = {
    # Order and ends.
    "succeeds": a_job(container("true")),
    "says": a_job(told("echo done")),
    "in-order": a_job(
        container("echo one >>/shared/log", "first", **AT_SHARED),
        container("echo two >>/shared/log", "second", **AT_SHARED),
        told("cat /shared/log", **AT_SHARED),
        **SHARED,
    ),
    "first-fails": a_job(container(f"echo of it >{LOG}; exit 42", "first"), container("true")),
    "second-fails": a_job(container("true", "first"), container("exit 3", "second"), container("true")),
    "fails": a_job(container("exit 7")),
    "fails-with-255": a_job(container("exit 255")),
    "kills-itself": a_job(container("kill -9 $$$$")),
    "child-kills-itself": a_job(container("sh -c 'kill -9 $$$$'")),
    "child-ends-itself": a_job(container("sh -c 'kill -15 $$$$'")),
    "reads-no-memory": a_job(container("exec python3 -c 'import ctypes; ctypes.string_at(0)'")),
    "absent-program": a_job(container("", command=["/usr/bin/absent"])),
    "absent-word": a_job(container("", command=["absent"])),
    "no-program": a_job(container("", command=["/etc/passwd"])),
    "absent-directory": a_job(container("pwd", workingDir="/absent")),
    "absent-first": a_job(container("", "first", command=["/usr/bin/absent"]), container("true")),
    "absent-server": a_server(container("", command=["/usr/bin/absent"])),
    "directory": a_job(told("pwd", workingDir="/tmp")),
    # Termination messages.
    "message-of-4097": a_job(told("seq 2000 | tr '\\n' ' ' | head -c 4097")),
    "message-and-failure": a_job(container(f"echo said >{LOG}; echo printed; exit 1")),
    "message-kept-on-success": a_job(container("echo printed")),
    "message-from-log": a_job(container("seq 2000; exit 3")),
    "message-of-80-lines": a_job(container("seq 100; exit 3")),
    "message-without-newline": a_job(container("printf words; exit 3")),
    "message-of-file-alone": a_job(container("echo printed; exit 3", terminationMessagePolicy="File")),
    "message-not-utf-8": a_job(container(f"printf 'a\\377\\000b\\303' >{LOG}")),
    "messages-of-12-kib": a_job(
        *(container(f"head -c 5000 /dev/zero | tr '\\0' {name[0]} >{LOG}", name) for name in ("a", "b", "c", "d")),
        container(f"head -c 5000 /dev/zero | tr '\\0' m >{LOG}"),
    ),
    "messages-of-12-kib-short": a_job(
        *(container(f"head -c {size} /dev/zero | tr '\\0' x >{LOG}", f"c{size}") for size in (1, 2000, 3000, 4096)),
        container(f"head -c 4096 /dev/zero | tr '\\0' m >{LOG}"),
    ),
    # Sidecars.
    "sidecar-late": a_job(
        sidecar(
            f"sleep 2; touch /shared/up; {FOREVER}",
            startupProbe={"exec": {"command": ["test", "-e", "/shared/up"]}, **EVERY_SECOND, "failureThreshold": 30},
            **AT_SHARED,
        ),
        told("ls /shared", **AT_SHARED),
        **SHARED,
    ),
    "sidecar-late-by-http": a_job(
        serving("sidecar", after=2, restartPolicy="Always", startupProbe=http(failureThreshold=30)), told("echo up")
    ),
    "sidecar-by-one-long-probe": a_job(
        sidecar(
            f"sleep 2; touch /shared/up; {FOREVER}",
            startupProbe={
                "exec": {"command": ["sh", "-c", "until test -e /shared/up; do sleep 0.1; done"]},
                "timeoutSeconds": 600,
                "failureThreshold": 1,
            },
            **AT_SHARED,
        ),
        told("ls /shared", **AT_SHARED),
        **SHARED,
    ),
    "sidecar-never": a_job(sidecar(FOREVER, startupProbe=NEVER_UP), container("true")),
    "sidecar-never-by-http": a_job(
        sidecar(
            FOREVER,
            ports=[{"name": "http", "containerPort": 8123}],
            startupProbe=http(failureThreshold=8),
        ),
        container("true"),
    ),
    "sidecar-never-and-deadline": a_job(
        sidecar(FOREVER, startupProbe={**NEVER_UP, "failureThreshold": 600}),
        container("true"),
        activeDeadlineSeconds=12,
    ),
    "sidecar-ends-well": a_job(
        sidecar(f"trap 'exit 0' TERM; {UP}; {FOREVER}", **AT_SHARED), container(WAITS_UNTIL_UP, **AT_SHARED), **SHARED
    ),
    "sidecar-ends-badly": a_job(
        sidecar(f"trap 'echo words; exit 7' TERM; {UP}; {FOREVER}", **AT_SHARED),
        container(WAITS_UNTIL_UP, **AT_SHARED),
        **SHARED,
    ),
    "sidecar-ends-by-kill": a_job(
        sidecar(f"{UP}; {FOREVER}", **AT_SHARED), container(WAITS_UNTIL_UP, **AT_SHARED), **SHARED
    ),
    "sidecars-of-two": a_job(
        sidecar(f"trap 'exit 0' TERM; {UP}; {FOREVER}", "one", **AT_SHARED),
        container(WAITS_UNTIL_UP, "first", **AT_SHARED),
        sidecar(f"trap 'exit 0' TERM; touch /shared/two; {FOREVER}", "two", **AT_SHARED),
        container("until test -e /shared/two; do sleep 0.1; done", **AT_SHARED),
        **SHARED,
    ),
    "sidecar-done-before-main": a_job(
        sidecar(WAITS_UNTIL_UP, **AT_SHARED), container(f"{UP}; sleep 90", **AT_SHARED), **SHARED
    ),
    "sidecar-crashes": a_job(
        sidecar(f"{WAITS_UNTIL_UP}; exit 5", **AT_SHARED), container(f"{UP}; sleep 90", **AT_SHARED), **SHARED
    ),
    "sidecar-crashes-before-up": a_job(sidecar("exit 5", startupProbe=NEVER_UP), container("true")),
    "sidecar-and-main-that-fails": a_job(
        sidecar(f"trap 'exit 0' TERM; {UP}; {FOREVER}", **AT_SHARED),
        container(f"{WAITS_UNTIL_UP}; exit 9", **AT_SHARED),
        **SHARED,
    ),
    "sidecar-and-first-that-fails": a_job(
        sidecar(f"trap 'exit 0' TERM; {UP}; {FOREVER}", **AT_SHARED),
        container(f"{WAITS_UNTIL_UP}; exit 9", "first", **AT_SHARED),
        container("true"),
        **SHARED,
    ),
    "sidecar-not-ready": a_job(
        sidecar(FOREVER, readinessProbe=NEVER_UP),
        container("sleep 60"),
    ),
    "sidecar-not-alive": a_job(sidecar(FOREVER, livenessProbe=NEVER_UP), container("sleep 60")),
    # Deadlines.
    "deadline": a_job(container(FOREVER), activeDeadlineSeconds=12),
    "deadline-and-trap": a_job(container(f"trap 'exit 0' TERM; {FOREVER}"), activeDeadlineSeconds=12),
    "deadline-of-first": a_job(container(FOREVER, "first"), container("true"), activeDeadlineSeconds=12),
    "deadline-of-waiting": a_job(
        container("true", volumeMounts=[mounted("v", "/v")]),
        volumes=[volume("v", configMap={"name": "absent"})],
        activeDeadlineSeconds=5,
    ),
    # What is not there.
    "absent-config-map": a_job(
        container("true", volumeMounts=[mounted("v", "/v")]), volumes=[volume("v", configMap={"name": "absent"})]
    ),
    "absent-config-map-of-two": a_job(
        container("true", "first"),
        container("true", volumeMounts=[mounted("v", "/v")]),
        volumes=[volume("v", configMap={"name": "absent"})],
    ),
    "absent-key": a_job(
        container("true", volumeMounts=[mounted("v", "/v")]),
        volumes=[volume("v", configMap={"name": EXISTING, "items": [{"key": "absent", "path": "x"}]})],
    ),
    "absent-secret": a_job(
        container("true", volumeMounts=[mounted("v", "/v")]), volumes=[volume("v", secret={"secretName": "absent"})]
    ),
    "absent-image": a_job(container("true", image="absent.invalid/nothing:1", imagePullPolicy="Never")),
    # Volumes.
    "empty-dir": a_job(viewing(mounted("shared", "/shared")), **SHARED),
    "empty-dir-in-memory": a_job(
        container("echo words >/dev/shm/file", "first", volumeMounts=[mounted("memory", "/dev/shm")]),
        viewing(mounted("memory", "/dev/shm")),
        volumes=[volume("memory", emptyDir={"medium": "Memory"})],
    ),
    "empty-dir-read-only": a_job(
        container("echo words >/shared/file", "first", **AT_SHARED),
        viewing(mounted("shared", "/shared", readOnly=True)),
        **SHARED,
    ),
    "empty-dir-below-another": a_job(
        viewing(mounted("shared", "/shared"), mounted("inner", "/shared/inner")),
        volumes=[volume("shared", emptyDir={}), volume("inner", emptyDir={})],
    ),
    "sub-path": a_job(
        container("mkdir -p /shared/a/b; echo c >/shared/a/b/c", "first", **AT_SHARED),
        viewing(mounted("shared", "/sub", subPath="a/b", readOnly=True)),
        **SHARED,
    ),
    "sub-path-of-a-file": a_job(
        container("echo c >/shared/c", "first", **AT_SHARED),
        viewing(mounted("shared", "/sub/c", subPath="c", readOnly=True)),
        **SHARED,
    ),
    "sub-path-that-is-absent": a_job(viewing(mounted("shared", "/sub", subPath="x/y")), **SHARED),
    "sub-path-that-leads-out": a_job(
        container("ln -s /etc /shared/link", "first", **AT_SHARED),
        viewing(mounted("shared", "/sub", subPath="link")),
        **SHARED,
    ),
    "claim": a_job(viewing(mounted("claim", "/claim")), volumes=[CLAIM]),
    "claim-mounted-read-only": a_job(viewing(mounted("claim", "/claim", readOnly=True)), volumes=[CLAIM]),
    "claim-read-only": a_job(viewing(mounted("claim", "/claim")), volumes=[READ_ONLY_CLAIM]),
    "config-map": a_job(viewing(mounted("keys", "/keys")), volumes=[KEYS]),
    "config-map-items": a_job(viewing(mounted("keys", "/keys")), volumes=[ITEMS]),
    "config-map-sub-path": a_job(viewing(mounted("keys", "/keys/one", subPath="a")), volumes=[KEYS]),
    "secret": a_job(viewing(mounted("secret", "/secret", readOnly=True)), volumes=[SECRET]),
    "content": a_job(
        told(
            "cat /keys/a /keys/b /secret/a",
            volumeMounts=[mounted("keys", "/keys"), mounted("secret", "/secret")],
        ),
        volumes=[KEYS, SECRET],
    ),
    # What a program is told and sees.
    "sees": a_job(viewing()),
    "sees-another-user": a_job(viewing(), securityContext={**USER, "runAsUser": 65534, "runAsGroup": 65534}),
    "sees-no-group": a_job(viewing(), securityContext={"runAsNonRoot": True, "runAsUser": 1000}),
    "sees-writable-root": a_job(
        viewing(securityContext={"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}})
    ),
    "variables": a_job(
        told(
            'echo "$A|$B|$C|$D|$E|$F"',
            env=[
                {"name": "A", "value": "a"},
                {"name": "B", "value": "$(A)b"},
                {"name": "C", "value": "$$(A)c"},
                {"name": "D", "value": "$(LATER)$(ABSENT)"},
                {"name": "E", "value": "$$$$(A) $$ $ $( $x"},
                {"name": "F"},
                {"name": "LATER", "value": "later"},
            ],
        )
    ),
    "variables-in-arguments": a_job(
        container(
            "",
            command=["sh", "-c", f'echo "$*" >{LOG}', "$(A)"],
            args=["$(A)", "$$(A)", "$$$(A)", "$(ABSENT)", "$(A", "$", "a$$b", "$(B)", "$(PATH)"],
            env=[{"name": "A", "value": "of a"}, {"name": "B", "value": "$$(A)"}],
        )
    ),
    "variables-of-the-pod": a_job(
        told(
            'test -n "$UID_OF_POD" && echo uid',
            env=[{"name": "UID_OF_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}],
        )
    ),
    # Servers.
    "server": a_server(container(FOREVER)),
    "server-after-first": a_server(container("true", "first"), container(FOREVER)),
    "server-crashes": a_server(container("exit 6")),
    "server-ends": a_server(container("true")),
    "server-first-crashes": a_server(container(f"echo no >{LOG}; exit 8", "first"), container(FOREVER)),
    "server-says-and-crashes": a_server(container("echo words; exit 6")),
    "server-ready": a_server(serving(readinessProbe=http())),
    "server-not-ready": a_server(serving(readinessProbe=http(httpGet={"path": "/absent", "port": "http"}))),
    "server-ready-by-program": a_server(
        container(FOREVER, readinessProbe={"exec": {"command": ["true"]}, **EVERY_SECOND})
    ),
    "server-starting": a_server(container(FOREVER, startupProbe={**NEVER_UP, "failureThreshold": 600})),
    "server-never-started": a_server(container(FOREVER, startupProbe=NEVER_UP)),
    "server-not-alive": a_server(container(f"trap 'exit 0' TERM; {FOREVER}", livenessProbe=NEVER_UP)),
    "server-started-late": a_server(
        serving(after=2, startupProbe=http(failureThreshold=30), readinessProbe=http(), livenessProbe=http())
    ),
}
"""By the name of the pod."""
STAY = frozenset(
    {
        *("absent-config-map", "absent-config-map-of-two", "absent-key", "absent-secret", "absent-image"),
        *("absent-directory", "sub-path-that-leads-out", "sidecar-not-ready"),
    }
)
"""Those of Jobs that do not end by themselves."""


def cases() -> Iterator[Case]:
    """Yield a case for each of them."""
    for name, spec in SPECS.items():
        sees = any(VIEW in each["command"] for each in (*spec.get("initContainers", []), *spec["containers"]))
        stays = name in STAY or spec["restartPolicy"] == "Always"
        yield Case(name, spec, stays=stays, plain=not sees)
