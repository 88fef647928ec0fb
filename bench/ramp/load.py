"""Requests that arrive by a Poisson process whose rate changes, each on a connection of its own."""

import http.client
import itertools
import random
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

IN_FLIGHT = 400
"""Threads; a request that finds none free is late, and its latency says so."""
REQUEST_SECONDS = 30.0


@dataclass(frozen=True)
class Leg:
    """A part of a ramp: the rate goes from one value to another in a straight line."""

    seconds: float
    start: float
    end: float
    """Requests a second."""


@dataclass(frozen=True)
class Answered:
    """One request: when it arrived, in seconds since the start, and how long it took."""

    at: float
    seconds: float
    error: str = ""
    """The HTTP status, or why there was no answer; empty: it was answered."""

    @property
    def ok(self) -> bool:
        """Whether it was answered."""
        return not self.error


def arrivals(legs: Sequence[Leg], seed: int = 0) -> list[float]:
    """Return when requests arrive, in seconds: a Poisson process by thinning one of the highest rate."""
    chance = random.Random(seed)
    highest = max(max(leg.start, leg.end) for leg in legs)
    found, now, total = [], 0.0, sum(leg.seconds for leg in legs)
    while (now := now + chance.expovariate(highest)) < total:
        if chance.random() * highest < rate(legs, now):
            found.append(now)
    return found


def rate(legs: Sequence[Leg], at: float) -> float:
    """Return the rate at a time; 0 after the last leg."""
    for leg in legs:
        if at <= leg.seconds:
            return leg.start + (leg.end - leg.start) * at / leg.seconds
        at -= leg.seconds
    return 0.0


class Load:
    """Sends requests to HOST:PORT, with one body after the other, and keeps what became of them."""

    def __init__(self, host: str, path: str, bodies: Sequence[bytes], headers: Mapping[str, str] | None = None) -> None:
        self._host, self._path, self._bodies, self._headers = host, path, bodies, dict(headers or {})
        self._lock = threading.Lock()
        self._answered: list[Answered] = []

    def send(self, times: Sequence[float], stop: threading.Event | None = None) -> None:
        """Send a request at each of the times, which are in order, until ``stop``, and wait for the last answer."""
        start = time.monotonic()
        with ThreadPoolExecutor(IN_FLIGHT) as threads:
            for at, body in zip(times, itertools.cycle(self._bodies), strict=False):
                time.sleep(max(0.0, at - (time.monotonic() - start)))
                if stop is not None and stop.is_set():
                    break
                threads.submit(self._ask, start, at, body)

    @property
    def answered(self) -> list[Answered]:
        """All requests that have ended."""
        with self._lock:
            return list(self._answered)

    def _ask(self, start: float, at: float, body: bytes) -> None:
        # The Service chooses a pod for each connection, so each request has its own.
        connection = http.client.HTTPConnection(self._host, timeout=REQUEST_SECONDS)
        try:
            connection.request("POST", self._path, body, self._headers)
            answer = connection.getresponse()
            answer.read()
            error = "" if answer.status == http.client.OK else str(answer.status)
        except (OSError, http.client.HTTPException) as reason:
            error = repr(reason)
        finally:
            connection.close()
        with self._lock:
            self._answered.append(Answered(at, time.monotonic() - start - at, error))
