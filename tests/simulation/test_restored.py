"""An object that is restored from a backup, with its claim and with its results or without them."""

from copy import deepcopy

from tests.simulation.cluster import Body, Cluster
from tests.simulation.deployments import UNANCHORED
from tests.simulation.test_rollback import GONE, RESULTS, active, keys, roll_back, three_served, version
from tests.simulation.test_upgrade import NEWER
from tests.states.deployment import a_deployment

CLAIM = ("PersistentVolumeClaim", "digits-repository")
READ = ["source", "server", "measure onnx-fp32", "service"]
REPLAYED = ["source", "reference", "metrics", "convert onnx-fp32", "profile onnx-fp32", "metrics"]


def again(body: Body, cluster: Cluster) -> Body:
    """An object as somebody makes it from its backup: another uid, no owner, and what the API server sets."""
    made = {"uid": f"uid-of-another-{body['kind']}", "resourceVersion": "1", "generation": 1, "managedFields": []}
    metadata = body["metadata"] | made | {"creationTimestamp": cluster.now.isoformat(), "ownerReferences": []}
    return deepcopy(body | {"metadata": metadata})


def restored(saved: Cluster, *, results: bool = True, claim_entry: bool = False) -> Cluster:
    """The object in another cluster, with its claim, before the operator's first pass. Its status is lost."""
    cluster = Cluster(deepcopy(saved.spec))
    cluster.uid, cluster.now, cluster.serial = "uid-of-the-next", saved.now, saved.serial
    cluster.objects[CLAIM] = again(saved.objects[CLAIM], cluster)
    if results:
        cluster.objects[RESULTS] = again(saved.objects[RESULTS], cluster)
        if not claim_entry:
            del cluster.objects[RESULTS]["data"]["claim"]
    return cluster


def settled(cluster: Cluster) -> list[str]:
    """What runs until nothing is left to do."""
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    return cluster.story


def test_with_its_results_nothing_is_converted_or_profiled_again() -> None:
    saved = three_served()
    cluster = restored(saved)
    assert settled(cluster) == READ
    assert active(cluster) == active(saved)
    assert keys(cluster) == keys(saved), "one can still go back to what served before"


def test_without_its_results_each_job_of_what_serves_runs_again_and_finds_its_result() -> None:
    """The keys are the same, by which each Job finds on the claim what it made."""
    saved = three_served()
    cluster = restored(saved, results=False)
    assert settled(cluster) == REPLAYED + READ[1:]
    assert keys(cluster) == [active(saved)]


def test_results_that_name_the_lost_claim_are_not_believed() -> None:
    """The claim may be an empty one, so what to believe is for a person to say."""
    saved = three_served()
    cluster = restored(saved, claim_entry=True)
    assert settled(cluster) == REPLAYED + READ[1:]
    assert keys(cluster) == [active(saved)]


def test_what_served_serves_again_without_its_source_by_its_name() -> None:
    saved = three_served()
    cluster = restored(saved)
    cluster.scripts = GONE
    cluster.run(5)
    assert cluster.has("SourceNotFound", "SourceResolved")
    assert not cluster.of_kind("Deployment")
    roll_back(cluster, active(saved))
    story = len(cluster.story)
    cluster.settle()
    assert cluster.story[story:] == ["server", "service"], "nothing is read, converted or measured"
    assert (active(cluster), cluster.condition("Ready")["status"]) == (active(saved), "True")


def test_without_results_and_source_nothing_serves_until_the_files_are_back() -> None:
    saved = three_served()
    cluster = restored(saved, results=False)
    cluster.scripts, scripts = GONE, cluster.scripts
    cluster.run(5)
    assert cluster.has("SourceNotFound")
    assert not cluster.of_kind("Deployment")
    cluster.scripts = scripts
    settled(cluster)
    assert active(cluster) == active(saved)


def test_a_newer_operator_takes_the_images_of_the_results() -> None:
    """The status, where they were pinned, is lost; the history has those of each state that served."""
    saved = three_served()
    cluster = restored(saved)
    cluster.settings = NEWER
    assert settled(cluster) == READ
    assert active(cluster) == active(saved)


def test_a_newer_operator_without_the_results_converts_with_its_own_images() -> None:
    saved = three_served()
    cluster = restored(saved, results=False)
    cluster.settings = NEWER
    settled(cluster)
    assert active(cluster) != active(saved), "another key, so no Job finds its result on the claim"


def test_an_object_that_names_its_revision_from_the_start_serves_it_without_reading_or_measuring() -> None:
    saved = three_served()
    cluster = restored(saved)
    roll_back(cluster, active(saved))
    assert settled(cluster) == ["server", "service"]
    assert active(cluster) == active(saved)


def test_after_an_older_state_of_the_cluster_nothing_is_cleaned_before_the_newest_revision_is_recorded() -> None:
    """As from a backup of etcd: the records are old, and the spec is applied as it is today."""
    cluster = deepcopy(
        a_deployment()
        .one_candidate()
        .asking(**UNANCHORED, **version(1))
        .settled()
        .edited(**version(2))
        .settled()
        .cluster()
    )
    begun = len(cluster.story)
    cluster.edit(**version(3), revisionHistoryLimit=0)
    story = settled(cluster)[begun:]
    assert story[-2:] == ["promotion", "clean"]
    assert keys(cluster) == [active(cluster)]
