"""What a status promises of the objects that it tells of: a function for each promise, whose docstring says it.

Some hold of each status that is written, whatever else the pass could not do. The others hold once a pass wrote
nothing: one that moves the Service, or makes an object, is followed by another at once, which tells of it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from triton_converters.contract.reasons import Reason
from triton_converters.contract.records import record_name
from triton_operator import names
from triton_operator.api.status import ASKED_FOR, NOTICES, ConditionType
from triton_operator.jobs.transient import TRANSIENT
from triton_operator.planning.summary import SUMMARY

Body = dict[str, Any]
WITHOUT_A_PLAN = {
    Reason.INVALID_SPEC,
    Reason.REQUEST_FAILED,
    Reason.STATUS_REFUSED,
    Reason.INTERNAL_ERROR,
}
"""Reasons of Reconciling for which no plan was made, or none was told: all else is told as it was before."""


@dataclass(frozen=True)
class Told:
    """A status, and what is there when it was written or, if nothing was written any more, after the pass."""

    body: Body
    """The TritonDeployment with that status."""
    objects: Mapping[tuple[str, str], Body]
    """Its children, by kind and name."""

    @property
    def name(self) -> str:
        """The TritonDeployment's name."""
        found: str = self.body["metadata"]["name"]
        return found

    @property
    def status(self) -> Body:
        """The status."""
        found: Body = self.body["status"]
        return found

    @property
    def serving(self) -> Body:
        """What the status tells of the active revision."""
        found: Body = self.status.get("serving", {})
        return found

    @property
    def conditions(self) -> dict[str, Body]:
        """The conditions, by their types."""
        return {each["type"]: each for each in self.status["conditions"]}

    def says(self, kind: ConditionType) -> tuple[str, str]:
        """Status and reason of a condition; both empty: it is not there."""
        found = self.conditions.get(kind, {})
        return found.get("status", ""), found.get("reason", "")

    def holds(self, kind: ConditionType) -> bool:
        """Whether a condition is True."""
        return self.says(kind)[0] == "True"

    @property
    def serves(self) -> bool:
        """Whether something is to serve."""
        return bool(self.body["spec"].get("serving", {}).get("mode") != "None")

    @property
    def reasons(self) -> set[str]:
        """The reasons of all conditions."""
        return {each["reason"] for each in self.status["conditions"]}

    @property
    def is_planned(self) -> bool:
        """Whether a plan has this status, so that all of it tells of the present."""
        return self.says("Reconciling")[1] not in WITHOUT_A_PLAN

    def of_kind(self, kind: str) -> list[Body]:
        """The children of a kind."""
        return [body for (found, _), body in self.objects.items() if found == kind]

    @property
    def service(self) -> Body | None:
        """The Service that clients use; None: there is none."""
        return self.objects.get(("Service", self.name))

    @property
    def server(self) -> Body | None:
        """The Deployment whose pods that Service selects; None: there is none."""
        if self.service is None:
            return None
        wanted = self.service["spec"]["selector"].items()
        return next(
            (
                each
                for each in self.of_kind("Deployment")
                if wanted <= each["spec"]["template"]["metadata"]["labels"].items()
            ),
            None,
        )

    @property
    def answers(self) -> bool:
        """Whether a pod that the Service selects is ready, and should go on."""
        server = self.server
        return server is not None and server["spec"]["replicas"] > 0 and server["status"].get("readyReplicas", 0) > 0

    @property
    def jobs(self) -> list[Body]:
        """The Jobs that run or wait, of whose end nothing is seen yet."""
        return [each for each in self.of_kind("Job") if not each["status"].get("shown")]

    @property
    def running(self) -> list[Body]:
        """The Jobs that may run and have not ended, or whose answer is not recorded."""
        known = self.objects.get(("ConfigMap", names.results(self.name)), {}).get("data", {})
        return [
            each
            for each in self.of_kind("Job")
            if not each["spec"].get("suspend") and not (each["status"].get("conditions") and _record(each) in known)
        ]

    @property
    def words(self) -> str:
        """What is told, and what is there."""
        said = ", ".join(f"{kind} {each['status']} {each['reason']}" for kind, each in self.conditions.items())
        servers = {
            each["metadata"][
                "name"
            ]: f"{each['spec']['replicas']} wanted, {each['status'].get('readyReplicas', 0)} ready"
            for each in self.of_kind("Deployment")
        }
        points = self.service["spec"]["selector"] if self.service is not None else "nowhere"
        jobs = {each["metadata"]["name"]: bool(each["spec"].get("suspend")) for each in self.jobs}
        return (
            f"Told: {said}; serving {self.serving}, target {self.status.get('target')}. There: servers (wanted, ready)"
            f" {servers}, the Service points {points}, Jobs (suspended) {jobs}"
        )


def _labels(body: Body) -> Body:
    found: Body = body["metadata"].get("labels", {})
    return found


def _record(job: Body) -> str:
    labels = job["metadata"]["labels"]
    return record_name(labels[names.STAGE_LABEL], labels[names.KEY_LABEL])


Truth = Callable[[Told], bool]


# Of each status ----------------------------------------------------------------------------------------------------


def available_is_under_ready(told: Told) -> bool:
    """Ready is True only while what the spec asks for serves, if anything is to serve; so Available is True too."""
    return told.holds("Available") or not (told.holds("Ready") and told.serves)


def ready_is_under_up_to_date(told: Told) -> bool:
    """UpToDate is True only while what the spec asks for serves, so Ready is True too."""
    return told.holds("Ready") or not told.holds("UpToDate")


def stalled_is_nothing_else(told: Told) -> bool:
    """Stalled is True only while nothing is tried, so neither Ready nor Reconciling is."""
    return not (told.holds("Stalled") and (told.holds("Ready") or told.holds("Reconciling")))


def nothing_is_newer_than_up_to_date(told: Told) -> bool:
    """UpToDate is True only while nothing newer is wanted than the active revision: that is the selected one."""
    selected = {each["revision"] for each in told.status.get("candidates", ()) if each["state"] == "Selected"}
    is_newest = "target" not in told.status and selected == {told.serving.get("revision")}
    return is_newest or not told.holds("UpToDate")


def summaries_are_there(told: Told) -> bool:
    """Ready, UpToDate, Reconciling and Stalled are there in each status."""
    return set(SUMMARY) <= set(told.conditions)


def notices_hold(told: Told) -> bool:
    """Warnings and notices are there only while they are True."""
    return all(told.says(kind)[0] in ("", "True") for kind in NOTICES)


def generation_is_seen(told: Told) -> bool:
    """`observedGeneration` is that of the spec that the status describes; no condition was observed for a later one."""
    seen = told.status["observedGeneration"]
    of_conditions = (each["observedGeneration"] for each in told.status["conditions"])
    return max(of_conditions) <= seen <= told.body["metadata"]["generation"]


STATUS: tuple[Truth, ...] = (
    available_is_under_ready,
    ready_is_under_up_to_date,
    stalled_is_nothing_else,
    nothing_is_newer_than_up_to_date,
    summaries_are_there,
    notices_hold,
    generation_is_seen,
)
"""What holds of each status that is written, whatever ended the pass."""


# Of each status that a plan has ------------------------------------------------------------------------------------


def available_answers(told: Told) -> bool:
    """Available is True only while the Service points to a server whose model is ready."""
    return told.answers or not told.holds("Available")


def endpoint_is_there(told: Told) -> bool:
    """`endpoint` tells where clients connect, so the Service is there."""
    return told.service is not None or "endpoint" not in told.status


def extras_are_asked_for(told: Told) -> bool:
    """Autoscaling, Routed and Soaked are there only with the field of `serving` that asks for them, and Published only
    with `publish`."""
    spec = told.body["spec"]
    serving = spec.get("serving", {})
    asked = (*map(serving.get, ("autoscaling", "route", "soak")), spec.get("publish"))
    return all(told.says(kind) == ("", "") or field is not None for kind, field in zip(ASKED_FOR, asked, strict=True))


def published_names_what_serves(told: Told) -> bool:
    """Published is True only if the revision of `published`, which has an image, is the active one."""
    published = told.status.get("published", {})
    return not told.holds("Published") or published.get("revision") == told.serving.get("revision")


def serving_is_one_revision(told: Told) -> bool:
    """`serving` tells of one revision: that of `serving.revision` is the one whose pods `serving.selector` selects."""
    revision, selector = told.serving.get("revision"), told.serving.get("selector")
    keys = [
        each["metadata"]["labels"][names.KEY_LABEL]
        for each in told.of_kind("Deployment")
        if names.selector(told.name, each["metadata"]["name"]) == selector
    ]
    return not keys or revision in (None, *keys)


PLANNED: tuple[Truth, ...] = (
    available_answers,
    endpoint_is_there,
    extras_are_asked_for,
    published_names_what_serves,
    serving_is_one_revision,
)
"""What holds of each status that a plan has, whatever of the plan could not be carried out."""


# Once a pass wrote nothing -----------------------------------------------------------------------------------------


def what_answers_is_available(told: Told) -> bool:
    """Available is True while the Service points to a server whose model is ready."""
    return told.holds("Available") or not told.answers


def service_is_told(told: Told) -> bool:
    """`endpoint` tells where clients connect, once there is the Service."""
    return "endpoint" in told.status or told.service is None


def revision_is_what_serves(told: Told) -> bool:
    """`serving.revision` is the key of the revision that the Service points to."""
    revision = told.serving.get("revision")
    return told.server is None or revision in (None, told.server["metadata"]["labels"][names.KEY_LABEL])


def selector_selects_what_serves(told: Told) -> bool:
    """`serving.selector` selects the active revision's pods, which are those of the Service; without one, no pod."""
    if not told.serves:
        return not any(body["kind"] == "Pod" and names.SERVER_LABEL in _labels(body) for body in told.objects.values())
    wanted = told.service["spec"]["selector"] if told.service is not None else names.server_pods(told.name, "none")
    return bool(told.serving["selector"] == ",".join(f"{name}={value}" for name, value in wanted.items()))


def nothing_serves_unasked(told: Told) -> bool:
    """With `serving.mode: None` there is no Deployment, Service, route, scaler or budget, and no condition of one."""
    kinds = ("Deployment", "Service", "HTTPRoute", "ScaledObject", "PodDisruptionBudget")
    conditions = {"Available", "PerformanceMeasured", "Autoscaling", "Routed", "Soaked"} & told.conditions.keys()
    return told.serves or not (conditions or any(map(told.of_kind, kinds)))


def replicas_are_counted(told: Told) -> bool:
    """`serving.replicas` is the number of pods of the active revision, ready or not."""
    pods = told.server["status"].get("replicas", 0) if told.server is not None else 0
    return bool(told.serving.get("replicas", 0) == pods)


def nothing_runs_while_stalled(told: Told) -> bool:
    """While Stalled is True no Job runs, but for soaks, looks, and what is tried again because it may pass."""
    started = [each for each in told.of_kind("Pod") if "startTime" in each["status"]]
    running = {each["metadata"]["ownerReferences"][0]["uid"] for each in started}
    stages = {each["metadata"]["labels"][names.STAGE_LABEL] for each in told.jobs if each["metadata"]["uid"] in running}
    status, reason = told.says("Stalled")
    return stages <= {"snapshot", "look"} or status != "True" or reason in TRANSIENT


def running_runs(told: Told) -> bool:
    """`Running`: the stage's Job is running."""
    return bool(told.running) or Reason.RUNNING not in told.reasons


def queued_is_suspended(told: Told) -> bool:
    """`Queued`: the stage's Job is suspended, or is being made anew."""
    is_queued = not told.jobs or any(each["spec"].get("suspend") for each in told.jobs)
    return is_queued or Reason.QUEUED not in told.reasons


def soaking_keeps_the_previous(told: Told) -> bool:
    """`Soaking`: the revision has just become active; the previous one still runs, to come back if need be."""
    return len(told.of_kind("Deployment")) > 1 or told.says("Soaked")[1] != Reason.SOAKING


def passed_soak_deletes_the_previous(told: Told) -> bool:
    """`SoakPassed`: the new revision did well on its first requests; the previous one was deleted."""
    is_alone = len(told.of_kind("Deployment")) == 1 or "target" in told.status
    return is_alone or told.says("Soaked")[1] != Reason.SOAK_PASSED


def scaling_has_a_scaler(told: Told) -> bool:
    """`Scaling`: KEDA scales the object, so there is a ScaledObject."""
    return bool(told.of_kind("ScaledObject")) or told.says("Autoscaling")[1] != Reason.SCALING


def accepted_route_is_there(told: Told) -> bool:
    """`RouteAccepted`: each Gateway that the route names accepts it, so there is an HTTPRoute."""
    return bool(told.of_kind("HTTPRoute")) or told.says("Routed")[1] != Reason.ROUTE_ACCEPTED


AT_REST: tuple[Truth, ...] = (
    what_answers_is_available,
    service_is_told,
    revision_is_what_serves,
    selector_selects_what_serves,
    nothing_serves_unasked,
    replicas_are_counted,
    nothing_runs_while_stalled,
    running_runs,
    queued_is_suspended,
    soaking_keeps_the_previous,
    passed_soak_deletes_the_previous,
    scaling_has_a_scaler,
    accepted_route_is_there,
)
"""What holds too once a pass wrote nothing and did not fail."""


def broken(told: Told, *, rests: bool) -> Iterator[str]:
    """Yield each promise that is broken, with what is told and what is there. ``rests``: the pass wrote nothing."""
    planned = (*PLANNED, *(AT_REST if rests else ())) if told.is_planned else ()
    for truth in (*STATUS, *planned):
        if not truth(told):
            yield f"{truth.__doc__} {told.words}"
