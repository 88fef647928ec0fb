"""Reads the Events about an object; nothing else tells which attempts of the cluster failed. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

PATIENCE = timedelta(seconds=3)
"""Earlier Events are ignored: a volume that is only late is reported within this time, and mounts after it."""
_COMING = ("TriggeredScaleUp", "Nominated")
"""Reasons of Events by which an autoscaler of nodes says that one comes: the Cluster Autoscaler's and Karpenter's."""


def events_about(uid: str, created_at: str, events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the Events about an object that came after PATIENCE, newest first."""
    late_events = [event for event in _events_of(uid, events) if _is_late(event, created_at)]
    return sorted(late_events, key=lambda event: event.get("lastTimestamp") or "", reverse=True)


def node_is_coming(uid: str, events: Iterable[Mapping[str, Any]]) -> bool:
    """Whether an autoscaler has said that it makes a node for the pod."""
    return any(each.get("reason") in _COMING for each in _events_of(uid, events))


def _events_of(uid: str, events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [event for event in events if event.get("involvedObject", {}).get("uid", "") == uid]


def _is_late(event: Mapping[str, Any], created_at: str) -> bool:
    """Whether the Event was last seen after PATIENCE. The kubelet repeats an Event with each try."""
    last = event.get("lastTimestamp")
    if not last or not created_at:
        return True
    return datetime.fromisoformat(last) - datetime.fromisoformat(created_at) >= PATIENCE
