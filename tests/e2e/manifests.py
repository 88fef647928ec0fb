"""Manifests as their files say, with changes laid over them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.kubectl import Object

FOLDER = Path(__file__).parent / "manifests"


def read(name: str) -> Object:
    """The one document of ``manifests/<name>.yaml``."""
    document: Object = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return document


def changed(manifest: Object, name: str, spec: Mapping[str, Any]) -> Object:
    """The manifest under another name, with ``spec`` laid over its spec; ``model`` stands for the one of ``models``."""
    new = manifest["spec"]
    changes = dict(spec)
    if "model" in changes:
        changes["models"] = [overlaid(new["models"][0], changes.pop("model"))]
    return {**manifest, "metadata": {"name": name}, "spec": overlaid(new, changes)}


def overlaid(old: Any, new: Any) -> Any:
    """Mappings are merged key by key, None removes the key; anything else is replaced."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    merged = {**old, **{key: overlaid(old.get(key), value) for key, value in new.items()}}
    return {key: value for key, value in merged.items() if value is not None}
