"""Files that move while the spec stays as it is."""

from tests.simulation.answers import GOOD, Script, Scripts
from tests.simulation.cluster import Cluster
from triton_converters.contract.records import FINISHED

NEW_FILES = Script(content="newer")


def move(cluster: Cluster, then: Scripts | None = None, files: Script = NEW_FILES) -> None:
    """Let the source be read again under the same spec, with other files at its URI."""
    others = then or (lambda stage, name, request: GOOD)
    cluster.scripts = lambda stage, name, request: files if stage == "source" else others(stage, name, request)
    data = cluster.objects["ConfigMap", "digits-results"]["data"]
    for entry in [each for each in data if each.removeprefix(FINISHED).startswith("source.")]:
        del data[entry]
    for kind, name in [each for each in cluster.objects if each[0] == "Job" and "-source-" in each[1]]:
        cluster.delete(kind, name)
