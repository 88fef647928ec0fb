"""The process of a Job's container: ``python3 -m triton_converters ...``, with one of these commands.

``STAGE REQUEST``: run a stage in one process; write its outcome to the termination message.

A boxed stage runs user code, asks a server that does, or runs pip. It is three processes in three containers, of which
only the second one meets that: ``prepare STAGE REQUEST`` looks for the inputs and for what is on the claim already, and
with a third argument, a CheckRequest, for the revision that a server beside it is about to start on; ``run STAGE``
watches over ``produce STAGE``, which cannot write to the claim; ``publish STAGE REQUEST`` writes to the claim and
answers.

Exit codes: 0 with a result; EXIT_FINAL for a failure that a repetition cannot fix; 1 for one that it may fix; 143 if
the kubelet asked the process to stop. Only the standard library is imported before the stage is known.
"""

import contextlib
import importlib
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, ModuleType

from triton_converters.claim_store import revision, root, sources
from triton_converters.claim_store.replay import find_result, has_result, write_result
from triton_converters.contract import layout, uris
from triton_converters.contract.conversion_requests import CodeRequest
from triton_converters.contract.document import Document, DocumentError
from triton_converters.contract.envelope import EXIT_FINAL, EXIT_RETRY, Outcome
from triton_converters.contract.failure import StageError, TerminatedError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.stages import STAGES
from triton_converters.contract.upkeep_requests import CheckRequest
from triton_converters.failures import failure_of
from triton_converters.fetch import mounted
from triton_converters.incoming import documents, wrapper
from triton_converters.incoming.wrapper import EXIT_TERMINATED

PACKAGE = Path(__file__).parent
PREPARE, RUN, PRODUCE, PUBLISH = "prepare", "run", "produce", "publish"


def main(arguments: Sequence[str]) -> int:
    """Run a command and return the exit code."""
    if len(arguments) == 2 and arguments[0] == RUN:
        return wrapper.run([sys.executable, "-m", "triton_converters", PRODUCE, arguments[1]], layout.INCOMING_MOUNT)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _terminate)
    # The pod's user has no entry in /etc/passwd, and torch asks for its name.
    os.environ.setdefault("USER", "converter")
    # With its default, epoll1, a client of gRPC 1.67 was seen to miss a reset connection and wait forever.
    os.environ.setdefault("GRPC_POLL_STRATEGY", "poll")
    # The image may be the user's.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        if len(arguments) == 2 and arguments[0] == PRODUCE:
            return _produce(arguments[1])
        message, code = _message(arguments)
    except (KeyboardInterrupt, TerminatedError):
        print("the stage was stopped by a signal", file=sys.stderr)
        return EXIT_TERMINATED
    if message:
        Path(os.environ.get("TERMINATION_LOG", "/dev/termination-log")).write_text(message, encoding="utf-8")
        print(message, flush=True)
    return code


def _message(arguments: Sequence[str]) -> tuple[str, int]:
    """Return the envelope as JSON, which is empty for a successful ``prepare``, and the exit code."""
    name, key = "", ""
    try:
        command, name, request, check = _parse(arguments)
        key = str(getattr(request, "key", ""))
        if command == PREPARE:
            _prepare(name, key, request, check)
            return "", 0
        return Outcome(name, key, _run(name, key, request)).to_json(), 0
    except (Exception, SystemExit) as error:
        failure = failure_of(error)
        code = EXIT_FINAL if failure.final else EXIT_RETRY
        return Outcome(name, key, None, failure.reason, failure.message).to_json(), code


def _parse(arguments: Sequence[str]) -> tuple[str, str, Document, CheckRequest | None]:
    """Return the command, which is empty for a stage of one container, the stage, the request and a server's check."""
    command = arguments[0] if len(arguments) >= 3 and arguments[0] in (PREPARE, PUBLISH) else ""
    words = arguments[1:] if command else arguments
    *words, check = words if command == PREPARE and len(words) == 3 else (*words, "")
    if len(words) != 2 or words[0] not in STAGES or STAGES[words[0]].boxed != bool(command):
        names = ",".join(name for name, stage in STAGES.items() if not stage.boxed)
        boxed = ",".join(name for name, stage in STAGES.items() if stage.boxed)
        message = f"usage: python3 -m triton_converters {{{names}}} REQUEST_JSON"
        raise StageError(Reason.CRASHED, f"{message}, or {{{PREPARE},{PUBLISH}}} {{{boxed}}} REQUEST_JSON")
    try:
        request = STAGES[words[0]].request.from_json(words[1])
        return command, words[0], request, CheckRequest.from_json(check) if check else None
    except DocumentError as error:
        raise StageError(Reason.CRASHED, f"the request is not one of this version: {error}") from error


def _prepare(name: str, key: str, request: Document, check: CheckRequest | None) -> None:
    """Look for the inputs and a server's revision, and leave for the next container what it needs besides them."""
    incoming = layout.INCOMING_MOUNT
    if layout.CONVERTERS_MOUNT.is_dir():
        target = layout.CONVERTERS_MOUNT / PACKAGE.name
        shutil.copytree(PACKAGE, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    root.check()
    if check is not None:
        revision.admit(check)
    for digest in filter(None, (getattr(request, each, "") for each in ("source", "weights", "data"))):
        sources.check_received(digest)
    if uri := os.environ.get(layout.DATASET):
        mounted.locate_folder(uris.split(uri).path, uri, layout.DATA_MOUNT)
    replayed = _published(name, key) is not None
    missing: tuple[str, ...] = () if replayed else _module(name, PREPARE).run(request, incoming)
    documents.write(incoming, documents.ORDER, documents.order_for(request, missing))


def _produce(name: str) -> int:
    """Do the stage's work; however it ends, write down how, and end with 0."""
    incoming = layout.INCOMING_MOUNT
    try:
        order = documents.read(incoming, documents.ORDER, documents.Order)
        request = STAGES[name].request.from_value(order.request)
        if isinstance(request, CodeRequest) and request.packages:
            # Last, so that they replace nothing of the image or of Python itself; and no .pth file in there is read.
            sys.path.append(str(layout.PACKAGES_MOUNT))
        _module(name, PRODUCE).run(request, order.missing, incoming)
        end = documents.End()
    except (Exception, SystemExit) as error:
        failure = failure_of(error, incoming)
        end = documents.End(failure.reason, failure.message, failure.final)
    documents.write_end(incoming, end)
    return 0


def _run(name: str, key: str, request: Document) -> Document:
    """Replay the valid result of the key, or run the stage; write the result unless the stage did."""
    stage = STAGES[name]
    if stage.has_claim:
        if stage.reads_claim:
            root.check()
        else:
            root.ensure()
    directory = stage.directory(key) if stage.directory else None
    if directory is not None and (found := _published(name, key)) is not None:
        # A running clean Job leaves alone what was just used; what it has just removed is made again.
        with contextlib.suppress(FileNotFoundError):
            os.utime(directory)
            return found
    result: Document = (
        _module(name, PUBLISH).run(request, layout.INCOMING_MOUNT) if stage.boxed else _module(name).run(request)
    )
    if directory is not None and not has_result(directory, name, key):
        write_result(directory, name, key, result)
    return result


def _published(name: str, key: str) -> Document | None:
    """Return the valid result of the key on the claim, or None."""
    directory = STAGES[name].directory
    return find_result(directory(key), name, key) if directory else None


def _module(name: str, *part: str) -> ModuleType:
    """Import the stage's module, or a part of it; not before, because it may need a framework."""
    return importlib.import_module(".".join(("triton_converters.stages", name, *part)))


def _terminate(number: int, frame: FrameType | None) -> None:
    """Unwind once, so that temporary directories and child processes are removed; a second signal ends at once."""
    signal.signal(number, lambda *_: os._exit(EXIT_TERMINATED))
    raise TerminatedError


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads and exit handlers of user code can neither delay the exit nor change its code.
    os._exit(code)
