"""Clients that ask without a pause while nights come and go."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from tritonclient import grpc
from tritonclient.utils import InferenceServerException

from tests.following.models import Answers, rows

PERIOD_SECONDS = 0.2
TIMEOUT_SECONDS = 30.0
"""A host that stands still for some seconds is no fault of the server."""
TOLERANCE = 1e-3
"""Between what a library answers and what is served, of probabilities; two versions differ by far more."""
ASKED = rows(7, 16)[0]


@dataclass
class Prober:
    """Asks one Service with a kept connection, and with a new one for each request."""

    url: str
    model: str
    good: list[Answers] = field(default_factory=list)
    """Answers of the versions that may serve, the newest last."""
    answered: int = 0
    failed: list[str] = field(default_factory=list)
    wrong: int = 0
    """Answers that are of no version that may serve."""
    _over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reach(self) -> None:
        """Wait until the Service leads to a server: the node's proxy knows of its first one a moment after Ready."""
        ends = time.monotonic() + TIMEOUT_SECONDS
        while True:
            try:
                self.serves()
            except InferenceServerException:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.5)
            else:
                return

    def start(self) -> Callable[[], None]:
        """Begin to ask; return what ends it."""
        threads = [threading.Thread(target=self._ask, args=(keeps,), daemon=True) for keeps in (True, False)]
        for thread in threads:
            thread.start()

        def stop() -> None:
            self._over.set()
            for thread in threads:
                thread.join()

        return stop

    def serves(self) -> int:
        """The place in ``good`` of the version that answers now; -1: none of them."""
        with grpc.InferenceServerClient(self.url) as client:
            return self._place(_infer(client, self.model))

    def _place(self, answers: Answers) -> int:
        near = [index for index, each in enumerate(self.good) if np.abs(each - answers).max() < TOLERANCE]
        return near[-1] if near else -1

    def _ask(self, keeps: bool) -> None:
        client = None
        while not self._over.wait(PERIOD_SECONDS):
            client = client or grpc.InferenceServerClient(self.url)
            failure, is_wrong = "", False
            try:
                is_wrong = self._place(_infer(client, self.model)) < 0
            except Exception as error:
                failure = f"{time.strftime('%X')} {type(error).__name__}: {error}"
            with self._lock:
                self.answered += not failure
                self.wrong += is_wrong
                self.failed += [failure] if failure else []
            if not keeps:
                client.close()
                client = None


def _infer(client: grpc.InferenceServerClient, model: str) -> Answers:
    asked = grpc.InferInput("features", list(ASKED.shape), "FP32")
    asked.set_data_from_numpy(ASKED)
    answers: Answers = client.infer(model, [asked], client_timeout=TIMEOUT_SECONDS).as_numpy("prediction")
    return answers
