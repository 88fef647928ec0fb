"""An author who attacks gets his own reason; everybody else goes on. docs/security.md has the table."""

import re
from collections.abc import Mapping

import pytest

from tests.conftest import Attack
from tests.e2e import possessing, stepping
from tests.e2e.attacks import Attacked
from tests.e2e.models import attempts as step_attempts
from tests.e2e.models import hostile
from tests.e2e.state import State
from tests.e2e.suite import thorough
from tests.hostile_messages import messages
from tests.hostile_text import obeyed
from triton_operator.api.status import CONDITION_MESSAGE_BYTES

OPERATOR_BYTES = 200 * 2**20
ATTEMPTS = [(group, attempt) for group, attempts in hostile.GROUPS.items() for attempt in attempts]
STEPS = [
    (where, group, attempt)
    for where in (stepping.MEASURED, stepping.SERVING)
    for group, attempts in step_attempts.GROUPS.items()
    for attempt in attempts
]
ALIKE = {
    *(set(hostile.LEFT_BEHIND) - {"says success", "says terminal escapes", "kills the wrapper", "leaves a terabyte"}),
    *(
        set(messages("source", "0" * 16))
        - {"terminal escapes", "invalid UTF-8", "a deflate bomb", "a result for another key"}
    ),
}
"""What user code leaves and says last that comes the same way as the others; tests without a cluster read all of it."""
REFUSED = "the Job's container run left /incoming/{}, which is not published"
SAID = {
    "says success": ("Crashed", REFUSED.format("dump.json")),
    "kills the wrapper": ("Crashed", "container run ended with exit code 1"),
    "says nothing": ("ResultMissing", "without a result: its program ended"),
    "says terminal escapes": ("UserCodeFailed", r"^[\x20-\x7e]*owned[\x20-\x7e]*$"),
    "leaves a terabyte": ("StorageFull", "has 1048576.0 MiB, but the repository claim has only"),
}
"""Reason and message; of all others the file that the attack left is refused."""


@pytest.mark.parametrize(("group", "attempt"), ATTEMPTS, ids=[f"{group}-{attempt}" for group, attempt in ATTEMPTS])
def test_user_code_reaches_nothing(attacked: Attacked, attack: Attack, group: str, attempt: str) -> None:
    came = attacked.came_of(group)[attempt]
    attack("user code", attempt, came)
    assert "REACHED" not in came


@pytest.mark.parametrize(
    ("where", "group", "attempt"), STEPS, ids=[f"{where}-{group}-{attempt}" for where, group, attempt in STEPS]
)
def test_a_python_step_reaches_nothing(
    attacked: Attacked, attack: Attack, where: str, group: str, attempt: str
) -> None:
    """It runs in the server's pod: next to the client that measures, and then for everybody's requests."""
    came = attacked.of_steps[where][group][attempt]
    attack(where, attempt, came)
    assert "REACHED" not in came


@pytest.mark.parametrize("how", [thorough(each, each in ALIKE) for each in hostile.LEFT_BEHIND])
def test_what_user_code_says_or_leaves_is_not_believed(attacked: Attacked, attack: Attack, how: str) -> None:
    condition = attacked.left_behind[how].condition("Converted")
    left = "batches.*" if how.startswith("leaves") else "outcome.json"
    reason, message = SAID.get(how, ("Crashed", REFUSED.format(left)))
    attack("user code", how, f"{condition['reason']}: {condition['message']}"[:100])
    assert condition["reason"] == reason
    assert re.search(message, condition["message"])


@pytest.mark.parametrize("way", possessing.WAYS)
def test_nobody_gets_what_another_object_keeps(
    possessed: Mapping[str, possessing.Told], attack: Attack, way: str
) -> None:
    reason, message = possessed[way]
    attack("author of an object", f"what another one keeps, by {way}", f"{reason}: {message}"[:100])
    assert reason == possessing.WAYS[way][1], message
    assert "REACHED" not in message


@pytest.mark.parametrize("what", [thorough(each, each in ALIKE) for each in messages("source", "0" * 16)])
def test_last_words_are_shown_and_not_believed(last_words_read: Mapping[str, State], attack: Attack, what: str) -> None:
    """They come through a real kubelet. Only a whole failure of the Job itself has the reason that it gives."""
    condition = last_words_read[what].condition("SourceResolved")
    attack("user code", f"last words: {what}", f"{condition['reason']}: {condition['message']}"[:100])
    assert condition["status"] != "True"
    assert condition["reason"] in ("Crashed", "UserCodeFailed")
    assert obeyed(condition["message"]) == set()
    assert len(condition["message"].encode()) <= CONDITION_MESSAGE_BYTES


def test_a_server_reaches_nothing(attacked: Attacked, attack: Attack) -> None:
    """Its model may be a program too. Another namespace's Service is the API server's."""
    found, unbounded = attacked.escapes.server, attacked.escapes.unbounded
    attack("a server's model", ", ".join(found), f"{sum(found.values())} of {len(found)} reached")
    assert not any(found.values()), found
    refused = {name for name, reached in unbounded.items() if not reached}
    assert refused <= {"a cloud's metadata"}, "where nothing bounds a pod, the addresses answer"


def test_what_a_server_writes_no_client_imports(attacked: Attacked, attack: Attack) -> None:
    """Its client may have parts of the claim, and imports modules while it measures."""
    attack(
        "a server's model", "modules in /tmp", f"{', '.join(attacked.planting.split())}; planted: {attacked.planted}"
    )
    assert "zipfile.py" in attacked.planting.split()
    assert attacked.planted == ()


def test_the_neighbour_goes_on_serving_from_the_same_claim(attacked: Attacked, attack: Attack) -> None:
    attack("user code", "a neighbour on the same claim", f"{attacked.answered} requests answered, none failed")
    assert attacked.neighbour.holds("Ready")
    assert attacked.answered > 0
    assert attacked.failures == ()
    assert attacked.revision
    assert attacked.revision_after == attacked.revision
    assert attacked.planted == ()


def test_the_operator_goes_on(attacked: Attacked, attack: Attack) -> None:
    attack("user code", "the operator", f"{attacked.operator_bytes / 2**20:.0f} MiB, not restarted")
    assert attacked.operator_bytes < OPERATOR_BYTES
    statuses = [each for pod in attacked.operator for each in pod["status"]["containerStatuses"]]
    assert [each["restartCount"] for each in statuses] == [0] * len(statuses)
    assert all(each["ready"] for each in statuses)
