"""The Jobs that search for a candidate's best configuration."""

from dataclasses import dataclass, replace
from math import ceil

from triton_converters.contract import layout
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.measurement_requests import SearchRequest
from triton_converters.contract.results import SearchResult
from triton_operator import names
from triton_operator.candidates.attempt import Attempt
from triton_operator.context import Context
from triton_operator.jobs.convert import spec_tuning
from triton_operator.jobs.profile import load, measured_online_sweep, offline_sweep, tolerance
from triton_operator.jobs.reference import Dump
from triton_operator.jobs.threads import shared_cpus
from triton_operator.resources.private_server import LOOPBACK, sidecar
from triton_operator.resources.server import private_inputs
from triton_operator.resources.work import Client, Work

MAXIMUM_INSTANCES = 5
"""Model Analyzer's default of run_config_search_max_instance_count."""
PATH = (
    *("search", "part", "profile", "mode", "base", "maximum_instances", "vary_cuda_graphs"),
    *("objectives", "constraints", "measurements", "seconds"),
)
"""The fields of a request that say which points are measured and when to stop. They change no point's figures."""


@dataclass(frozen=True)
class Budget:
    """What a search may spend. Measurements that are reused from an earlier search count too."""

    measurements: int
    seconds: int

    def share(self, searches: int) -> "Budget":
        """Return the budget of the first of ``searches`` searches that divide this one, rounded up."""
        return Budget(ceil(self.measurements / searches), ceil(self.seconds / searches))

    def minus(self, measurements: int, seconds: float) -> "Budget":
        """Return what the budget still has after these measurements and seconds."""
        return Budget(self.measurements - measurements, self.seconds - ceil(seconds))


def search_work(
    context: Context, dump: Dump, attempt: Attempt, budget: Budget, part: int
) -> Work[SearchRequest, SearchResult]:
    """Return the work of one part. The name of its file of points depends only on what changes a point's figures.

    So no point is measured again after a change of budget, mode or objective.
    """
    spec, candidate = context.spec, attempt.candidate
    (member,) = candidate.members
    sweep = (
        measured_online_sweep(context, attempt)
        if spec.selection.scenario == "Online"
        else offline_sweep(context, candidate)
    )
    base = spec_tuning(context, member.model)
    server_inputs = [private_inputs(context), context.client_inputs]
    request = SearchRequest(
        key="",
        search="",
        part=part,
        revision=attempt.key,
        reference=dump.key,
        profile=attempt.profile_key,
        model_name=spec.served_name,
        max_batch_size=spec.max_batch_size,
        precision=candidate.precision,
        tolerance=tolerance(context.spec, candidate.precision),
        scenario=spec.selection.scenario.lower(),
        load=load(context, LOOPBACK),
        sweep=sweep,
        mode=spec.selection.search.mode,
        base=base,
        maximum_instances=max(MAXIMUM_INSTANCES, base.instances),
        vary_cuda_graphs=spec.gpu_count > 0 and member.format == "trt",
        objectives=tuple(objective.as_request() for objective in spec.selection.objectives),
        constraints=spec.selection.constraints.as_requests,
        measurements=budget.measurements,
        seconds=budget.seconds,
        cpus=shared_cpus(context, member.model, FORMATS[member.format].backend),
    )
    # A line of the file says which load its point was measured with.
    point_request = replace(request, sweep=replace(sweep, batch_sizes=(), concurrencies=()))
    request = replace(request, search=names.result_key("points", point_request, *server_inputs, without=PATH))
    request = names.request_with_key("search", request, *server_inputs)
    inputs = (
        layout.reference_directory(dump.key),
        layout.revision_directory(attempt.key),
        layout.measurement_directory(attempt.profile_key),
    )
    return Work(
        stage="search",
        request=request,
        # The server has to start first, and a point that runs when the time is spent is still finished.
        deadline_seconds=budget.seconds + spec.performance.active_deadline_seconds,
        candidate=attempt.name,
        shape=Client(attempt, inputs, sidecar(context, attempt, reloads=True)),
    )
