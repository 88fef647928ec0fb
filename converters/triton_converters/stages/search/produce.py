"""Walk this part of a search's path on the pod's own server, and leave what was measured to be published."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from triton_converters.claim_store.replay import read_reference, read_result
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import SearchRequest
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ProfileResult, Row, SearchEnd, SearchPoint, SearchResult, Tuning
from triton_converters.contract.scoring import order
from triton_converters.contract.search_parts import PART_POINTS, REPEATS
from triton_converters.contract.text import printable, shortened
from triton_converters.incoming import documents, measured
from triton_converters.measuring import load_input
from triton_converters.measuring.environment import observe
from triton_converters.measuring.server import Server
from triton_converters.search.exhaustive import sweep
from triton_converters.search.journal import (
    BEGAN,
    FOLDER,
    MEASURED,
    MESSAGE_BYTES,
    REFUSED,
    REPEATED,
    STOPPED,
    Entry,
    Journal,
)
from triton_converters.search.path import SearchPath, Setup, follow
from triton_converters.search.probe import Probe
from triton_converters.search.quick import climb
from triton_converters.search.space import LoadLevel, Space

LOST_TWICE = 2
"""A configuration under which the server or the Job ended this often is not tried again."""
RESTART_SECONDS = 400
"""How long to wait for a server that ended: the kubelet restarts it after a pause of up to five minutes."""
RETRIED = frozenset({Reason.SERVER_CRASHED, Reason.MEASUREMENT_FAILED, Reason.INFERENCE_FAILED})
LOST = RETRIED | {Reason.SERVER_UNREACHABLE}
"""Reasons that count as the configuration's fault, which no kind says: only a search has configurations. After the last
one the server may hang, so another pod goes on."""
INPUTS = "inputs"
"""Folder for perf_analyzer's input, which is the profile's and not published once more."""
REFUSAL_CHARACTERS = 60
"""Longest refusal in the termination message, which 24 points share. The file of points has the whole text."""


class EndedError(Exception):
    """The walk ends before its path does: the budget is spent, or the next part continues."""

    def __init__(self, end: SearchEnd) -> None:
        """Say how the walk ends."""
        super().__init__(str(end))
        self.end = end


def run(request: SearchRequest, missing: tuple[str, ...], incoming: Path) -> None:
    """Write what this part answers, and add the new measurements to the points.

    Raises StageError: InputMissing (no reference or profile), InvalidSpec (input shapes, shared memory), ServerCrashed,
    ServerUnreachable; OSError if the node's disk is full.
    """
    (incoming / measured.FOLDER).mkdir(exist_ok=True)
    documents.write(incoming, documents.RESULT, _search(request, incoming))


def _search(request: SearchRequest, incoming: Path) -> SearchResult:
    signature = read_reference(request.reference).signature
    load_input.check_shapes(request.load.input_shapes, signature)
    profile_directory = layout.measurement_directory(request.profile)
    profile = read_result(profile_directory, "profile", request.profile, ProfileResult)
    rows: tuple[Row, ...] = getattr(profile, request.scenario)
    profiled = {Setup(request.base, LoadLevel(row.batch_size, row.concurrency)): row for row in rows}
    server = Server(request.load, request.model_name)
    server.wait_ready()
    # A server that an earlier Job left behind may serve any configuration.
    probe = Probe(request, server, signature, None, inputs=incoming / INPUTS)
    return Search(request, Space.of(request), Journal(incoming / FOLDER), probe, profiled).run()


@dataclass
class Search:
    """One part's walk."""

    request: SearchRequest
    space: Space
    journal: Journal
    probe: Probe
    profiled: Mapping[Setup, Row]
    """Measurements of the base from its profile; they cost nothing."""
    visited: list[Entry] = field(default_factory=list)
    """Entries on the path so far, including those of earlier parts."""

    def run(self) -> SearchResult:
        """Walk the path and, at its end, repeat the best points."""
        path: SearchPath = (
            climb(self.space, self.request.objectives, self.request.constraints)
            if self.request.mode == "Quick"
            else sweep(self.space)
        )
        ended = SearchEnd.CONVERGED if self.request.mode == "Quick" else SearchEnd.COMPLETE
        try:
            follow(path, self._answer)
        except EndedError as error:
            ended = error.end
        repeats = self._repeats() if ended else []
        own = self.visited[self._first : self._first + PART_POINTS]
        commands = [entry.command for entry in (*own, *repeats) if entry.command]
        return SearchResult(
            search=self.request.search,
            points=tuple(_told(entry) for entry in own),
            ended=ended,
            size=self.space.size,
            seconds=round(sum(entry.seconds for entry in (*self.visited, *repeats)), 1),
            environment=observe(self.probe.server, tuple(commands[:1])),
            repeats=tuple(_told(entry) for entry in repeats),
        )

    @property
    def _first(self) -> int:
        return self.request.part * PART_POINTS

    def _answer(self, point: Setup) -> Row | None:
        """Return a point's row from the profile, the journal or a measurement.

        Raises EndedError, and StageError if the server is gone.
        """
        if row := self.profiled.get(point):
            return row
        if any(entry.kind == REFUSED and entry.tuning == point.tuning for entry in self.visited):
            return None
        if len(self.visited) >= max(1, self.request.measurements - REPEATS):
            raise EndedError(SearchEnd.MEASUREMENTS_SPENT)
        if sum(entry.seconds for entry in self.visited) >= self.request.seconds:
            raise EndedError(SearchEnd.TIME_SPENT)
        if len(self.visited) >= self._first + PART_POINTS:
            raise EndedError(SearchEnd.GOES_ON)
        entry = self._known(point, MEASURED) or self._try(point, MEASURED)
        self.visited.append(entry)
        return entry.row

    def _known(self, point: Setup, kind: str) -> Entry | None:
        # A row comes first: an earlier part may have gone on from it, and refused the configuration at a later load.
        return self.journal.measured(point, kind) or self.journal.refused(point.tuning)

    def _try(self, point: Setup, kind: str, at_least: Row | None = None) -> Entry:
        """Load and measure a configuration; refuse it if the server or the Job ended twice under it."""
        tuning, load = point
        while self.journal.lost(tuning) < LOST_TWICE:
            started = time.monotonic()
            print(f"trying {describe(tuning)}, batch {load.batch_size}, concurrency {load.concurrency}", flush=True)
            self.journal.append(Entry(BEGAN, tuning, load.batch_size, load.concurrency))
            directory = self.journal.attempt()
            try:
                refusal = self.probe.load(tuning)
                row = None if refusal else self.probe.measure(point, directory, at_least)
            except BaseException as error:
                reason = error.reason if isinstance(error, StageError) else None
                if reason not in LOST:
                    self.journal.append(Entry(STOPPED, tuning, load.batch_size, load.concurrency))
                if reason not in RETRIED:
                    raise
                print(f"the attempt was lost: {error}", flush=True)
                self.probe.loaded = None
                self.probe.server.wait_ready(RESTART_SECONDS)
                continue
            return self._write(kind if row else REFUSED, point, row, refusal, time.monotonic() - started)
        return self._write(REFUSED, point, None, "the server or the Job ended twice while it was measured", 0.0)

    def _write(self, kind: str, point: Setup, row: Row | None, message: str, seconds: float) -> Entry:
        entry = Entry(
            kind,
            point.tuning,
            point.load.batch_size,
            point.load.concurrency,
            row,
            shortened(printable(message), MESSAGE_BYTES),
            round(seconds, 3),
            self.probe.command if row else "",
        )
        self.journal.append(entry)
        # `kubectl triton watch` shows this line.
        print(f"search {self._place(kind)}: {describe(point.tuning)}: {_figures(entry)} ({seconds:.1f} s)", flush=True)
        return entry

    def _place(self, kind: str) -> str:
        if kind == REPEATED:
            return "of the best once more"
        return f"{len(self.visited) + 1} of at most {self.request.measurements}"

    def _repeats(self) -> list[Entry]:
        """Measure the best point and the best of another configuration once more, with longer windows.

        Returns no entry if nothing better than the base was found: the search then changes nothing.
        """
        rows = dict(self.profiled) | {entry.point: entry.row for entry in self.visited if entry.row}
        ranked = sorted(rows, key=lambda point: order(rows[point], self.request.objectives, self.request.constraints))
        if not ranked or ranked[0].tuning == self.request.base:
            return []
        others = [point for point in ranked if point.tuning != ranked[0].tuning]
        return [
            self._known(point, REPEATED) or self._try(point, REPEATED, rows[point])
            for point in (ranked[0], *others[:1])
        ]


def describe(tuning: Tuning) -> str:
    """Return a configuration in words."""
    words = [f"max batch {tuning.max_batch_size}", f"{tuning.instances} instances"]
    if tuning.dynamic_batching:
        words.append(f"queue delay {tuning.max_queue_delay_microseconds} us")
        words += [f"preferred {', '.join(map(str, tuning.preferred_batch_sizes))}"] * bool(tuning.preferred_batch_sizes)
    else:
        words.append("no dynamic batching")
    return "; ".join(words + ["CUDA graphs"] * tuning.cuda_graphs)


def _figures(entry: Entry) -> str:
    """Return a point's figures or its refusal in words."""
    if entry.row is None:
        return f"refused: {entry.message}"
    load = f"batch {entry.batch_size}, concurrency {entry.concurrency}"
    return f"{load}: {entry.row.throughput:.1f} inferences/s, p99 {entry.row.p99} us"


def _told(entry: Entry) -> SearchPoint:
    return SearchPoint(entry.tuning, entry.row, entry.message[:REFUSAL_CHARACTERS])
