"""The other servers of models: a registry, a hub, a bucket and a web server, each with an account of its own."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.converters import registry_server, s3_server
from tests.converters.hub_server import Hub
from tests.e2e.kubectl import Kubectl
from tests.e2e.outside import Outside
from tests.following.followed import Followed
from tests.following.models import NETWORK, train
from tests.following.nights import BROKEN, WORSE
from tests.following.probe import ASKED
from triton_operator.observed.following import APART_SECONDS

TOKEN = "a-token-of-one-reader"


@dataclass(frozen=True)
class Scheme:
    """How one kind of server is followed."""

    name: str
    source: Mapping[str, Any]
    secret: Mapping[str, str]
    publish: Callable[[Mapping[str, bytes]], object]
    """Puts a version's files there."""
    exact: bool
    """Whether one look tells a whole version."""
    judged: bool = True
    """Whether the samples and the metric come with it; a single file has none."""


def schemes(outside: Outside) -> tuple[Scheme, ...]:
    """Return all of them."""
    commits = iter(f"{number:040x}" for number in range(1, 100))

    def to_hub(files: Mapping[str, bytes]) -> None:
        outside.hub.behaviour.hub = Hub(dict(files), commit=next(commits), gated=True, token=TOKEN)

    def to_bucket(files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            outside.bucket.put(f"night/{name}", content)

    def to_web(files: Mapping[str, bytes]) -> None:
        has = outside.web.behaviour
        has.authorization, has.content, has.tag = f"Bearer {TOKEN}", files[NETWORK], f'"{hash(files[NETWORK])}"'

    keys = {"AWS_ACCESS_KEY_ID": s3_server.KEY, "AWS_SECRET_ACCESS_KEY": s3_server.SECRET}
    account = {".dockerconfigjson": registry_server.a_docker_config(outside.registry.host)}
    return (
        Scheme(
            "registry",
            {"uri": outside.registry.uri(":nightly")},
            account,
            lambda files: outside.registry.push("nightly", files),
            exact=True,
        ),
        Scheme("hub", {"uri": "hf://acme/ocr", "version": "main"}, {"HF_TOKEN": TOKEN}, to_hub, exact=True),
        Scheme(
            "bucket",
            {"uri": "s3://models/night"},
            {"AWS_ENDPOINT_URL": outside.bucket.url, **keys},
            to_bucket,
            exact=False,
        ),
        Scheme(
            "web",
            {"uri": outside.web.uri(f"models/{NETWORK}")},
            {"token": TOKEN},
            to_web,
            exact=False,
            judged=False,
        ),
    )


def live(kubectl: Kubectl, scheme: Scheme) -> Followed:
    """A first version, a good and a bad one; return the object, whose prober is told of all of it."""
    content = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": scheme.name}, "stringData": scheme.secret}
    kubectl.apply(content)
    followed = Followed(kubectl, scheme.name, NETWORK)
    first = train(NETWORK, 0)
    scheme.publish(first.files)
    source = {**scheme.source, "secretRef": {"name": scheme.name}}
    followed.first(source, first.answers(ASKED), judged=scheme.judged)
    stop = followed.prober.start()
    try:
        good = train(NETWORK, 1)
        scheme.publish(good.files)
        _look(followed, scheme)
        said = [followed.serves(good)]
        followed.check("good")
        bad = train(NETWORK, 2, "labels" if scheme.judged else "nan")
        scheme.publish(bad.files)
        _look(followed, scheme)
        reasons = WORSE if scheme.judged else BROKEN
        said.append(followed.refuses(reasons))
        followed.check("bad")
    finally:
        stop()
    print(scheme.name, *said, sep="\n      ", flush=True)
    return followed


def _look(followed: Followed, scheme: Scheme) -> None:
    """Look until a version is taken: what has no version of its own is taken after two looks that lie apart."""
    state = followed.look()
    if not scheme.exact:
        assert state.says("UpToDate", "VersionUnsettled"), state.summary()
        time.sleep(APART_SECONDS)
        followed.look()
