"""The real MLflow on the node's address, and what a pipeline and its troubles do to it."""

import base64
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from tests.converters.mlflow_server import Real

REGISTER = """
import base64, json, pathlib, sys, tempfile, mlflow
name, files = sys.argv[1], json.load(sys.stdin)
client = mlflow.MlflowClient()
folder = pathlib.Path(tempfile.mkdtemp())
for path, content in files.items():
    (folder / path).write_bytes(base64.b64decode(content))
if not client.search_registered_models(f"name = '{name}'"):
    client.create_registered_model(name)
experiment = client.get_experiment_by_name(name)
run = client.create_run(experiment.experiment_id if experiment else client.create_experiment(name))
client.log_artifacts(run.info.run_id, str(folder), "model")
print(client.create_model_version(name, f"runs:/{run.info.run_id}/model", run.info.run_id).version)
"""
"""Logs files below a run, registers them as a version, and prints its number."""
ALIAS = "champion"


@dataclass(frozen=True)
class Registry:
    """The server."""

    server: Real

    def register(self, name: str, files: Mapping[str, bytes]) -> str:
        """Register a version without an alias; return its number."""
        told = json.dumps({path: base64.b64encode(content).decode() for path, content in files.items()})
        return self.server.run("-c", REGISTER, name, input=told.encode())

    def point(self, name: str, version: str) -> None:
        """Give the alias to a version."""
        self.server.set_alias(name, ALIAS, version)

    def mark(self, name: str, version: str, status: str) -> None:
        """Set a version's status, which no API call does."""
        with sqlite3.connect(self.server.folder / "store.db") as store:
            store.execute(
                "UPDATE model_versions SET status = ? WHERE name = ? AND version = ?", (status, name, version)
            )
