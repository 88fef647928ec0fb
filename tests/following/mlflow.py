"""Fifteen nights of two models that MLflow has."""

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from tests.converters.mlflow_server import PASSWORD, USER
from tests.e2e.kubectl import Kubectl
from tests.following.followed import Followed, looks_fail, told
from tests.following.models import NETWORK, TREES, Trained, train
from tests.following.nights import NIGHTS, Night
from tests.following.probe import ASKED
from tests.following.registry import ALIAS, Registry


@dataclass
class Model(Followed):
    """One object of a model that MLflow has."""

    registry: Registry = field(kw_only=True)
    numbers: list[str] = field(default_factory=list)
    """MLflow's numbers of the versions that served, the newest last."""

    def begin(self) -> None:
        """Register the first version, and apply the object."""
        number, trained = self.register(0, "")
        self.numbers.append(number)
        uri = f"mlflow://{self.registry.server.host}/{self.name}"
        self.first({"uri": uri, "version": ALIAS, "secretRef": {"name": "mlflow"}}, trained.answers(ASKED))

    def register(self, night: int, spoil: str, *, alias: bool = True) -> tuple[str, Trained]:
        """Train and register the version of a night."""
        trained = train(self.file, night, spoil)
        number = self.registry.register(self.name, trained.files)
        if alias:
            self.registry.point(self.name, number)
        return number, trained


def live(index: int, night: Night, model: Model) -> str:
    """One model's night, as far as it is its own; return what was told."""
    spoil = night.spoil[model.file == NETWORK]
    if night.happens == "registered":
        number, trained = model.register(index, spoil)
        model.look()
        if night.reasons:
            return model.refuses(night.reasons)
        model.numbers.append(number)
        return model.serves(trained)
    if night.happens == "pending":
        number, _ = model.register(index, "", alias=False)
        model.registry.mark(model.name, number, "PENDING_REGISTRATION")
        model.registry.point(model.name, number)
        model.look()
        return told(model.wait("a look that fails", looks_fail))
    before, now = model.numbers[-2:]
    for number in (before, now, before, now):
        model.registry.point(model.name, number)
        model.look()
    state = model.wait("rest", lambda state: state.holds("UpToDate"))
    return told(state)


def trouble(models: list[Model], night: Night, registry: Registry) -> str:
    """A night in which the registry is away, or refuses the account, for both models."""
    server = registry.server
    if night.happens == "away":
        os.killpg(server.process, signal.SIGSTOP)
    else:
        _secret(models[0].kubectl, "another")
    try:
        each_of(models, lambda model: model.look())
        each_of(models, lambda model: model.wait("a look that fails", looks_fail))
        return told(models[0].state)
    finally:
        if night.happens == "away":
            os.killpg(server.process, signal.SIGCONT)
        else:
            _secret(models[0].kubectl, PASSWORD)


def each_of(models: list[Model], do: Callable[[Model], object]) -> list[object]:
    """Do it for all models side by side."""
    with ThreadPoolExecutor(len(models)) as threads:
        return list(threads.map(do, models))


def _secret(kubectl: Kubectl, password: str) -> None:
    content = {"username": USER, "password": password}
    kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mlflow"}, "stringData": content})


def run(kubectl: Kubectl, registry: Registry) -> list[Model]:
    """All nights of both; return them."""
    models = [Model(kubectl, name, file, registry=registry) for name, file in (("trees", TREES), ("network", NETWORK))]
    _secret(kubectl, PASSWORD)
    start = time.monotonic()
    each_of(models, lambda model: model.begin())
    print(f"both models are Ready after {time.monotonic() - start:.0f} s", flush=True)
    with ExitStack() as stack:
        for model in models:
            stack.callback(model.prober.start())
        for index, night in enumerate(NIGHTS, 1):
            begun = time.monotonic()
            if night.happens in ("away", "expired"):
                outcomes: list[object] = [trouble(models, night, registry)]
            else:
                outcomes = each_of(models, partial(live, index, night))
            for model in models:
                model.check(night.name)
            print(f"{index:2}  {night.name}, {time.monotonic() - begun:.0f} s", flush=True)
            print(*(f"      {str(each)[:200]}" for each in outcomes), sep="\n", flush=True)
            asked = ((each.prober.answered, len(each.prober.failed), each.prober.wrong) for each in models)
            print(f"      requests answered, failed, wrong: {', '.join(map(str, asked))}", flush=True)
    return models
