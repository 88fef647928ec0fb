"""The reason for which pip failed, from its words. Pure.

pip has one exit code for all failures. What it could not read of an index it takes for absent, and says so in its log
file alone.
"""

import re

from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.text import printable
from triton_converters.packages.pip_alone import BY_URL, REDIRECTS, REFUSED

QUOTED_CHARACTERS = 700
NAMED_VERSIONS = 10
"""How many versions that the index has are named: the newest."""
RETRY = "then type: kubectl triton retry NAME"
_UNREAD = re.compile(r"Could not fetch URL \S+: (.*?)(?: - skipping)?$", re.MULTILINE)
_STATUS = re.compile(r"\b([45]\d\d) (?:Client|Server) Error|HTTP error (\d{3})")
_CERTIFICATE = re.compile(r"CERTIFICATE_VERIFY_FAILED\]?:? ?(?:certificate verify failed:? ?)?([^(\n]*)")
_BROKEN = re.compile(
    r"Max retries exceeded|ReadTimeoutError|ConnectTimeout|ConnectionResetError|Connection aborted|ProxyError"
    r"|NewConnectionError|NameResolutionError|IncompleteRead|RemoteDisconnected|Connection broken|too many 5\d\d"
)
_LACKING = re.compile(r"satisfies the requirement (.+?) \(from versions: (.*?)\)?$", re.MULTILINE)
_PYTHON = re.compile(r"Ignored the following versions that require a different python version: (.*)$", re.MULTILINE)
_BY_URL = re.compile(rf"^ERROR: (.* by a URL; {BY_URL})", re.MULTILINE)
_REDIRECTS = re.compile(rf"(?<!\S)\S+ {REDIRECTS}")
"""A word begins after a space: a search that may begin anywhere in a long one takes the square of its length."""
_REFUSED_WHEEL = re.compile(r"^ERROR: (?:For req: (.*)|(.* has an invalid wheel, .*))", re.MULTILINE)
_CONFLICT = re.compile(r"The conflict is caused by:\n((?:[ \t]+\S.*\n?)+)")


def failure(printed: str, log: str, host: str, advice: str = "") -> StageError:
    """Return the failure. ``printed``: pip's last lines. ``log``: its log file. ``host``: the index's.

    ``advice``: what else to do about versions that do not fit together than to change the requirements.
    """
    if "[Errno 28]" in printed or "[Errno 122]" in printed:
        message = "no space is left on the node's disk for the packages; enlarge the disk, or ask for fewer packages"
        return StageError(Reason.STORAGE_FULL, message, final=False)
    if "DO NOT MATCH THE HASHES" in printed:
        return StageError(
            Reason.DIGEST_MISMATCH,
            f"{host} sent a package that has none of the hashes in the requirements file: {_after('HASHES', printed)}",
        )
    if "--require-hashes mode" in printed:
        message = "with a hash on one line, every package that the image lacks needs a line with == and its hash"
        return StageError(Reason.REQUIREMENTS_INVALID, f"{message}: {_after('--require-hashes mode', printed)}")
    if found := _REDIRECTS.search(printed):
        message = f"the package index {host} cannot be read: {_short(found[0], 200)}; have it answer by https itself"
        return StageError(Reason.INDEX_UNTRUSTED, f"{message}, {RETRY}")
    if found := _BY_URL.search(printed):
        return StageError(Reason.PACKAGE_NOT_FOUND, f"{_short(found[1])}: choose another")
    if found := _REFUSED_WHEEL.search(printed):
        message = (
            f"pip does not install a wheel of {_short(found[1] or found[2])}: choose another version or another package"
        )
        return StageError(Reason.PACKAGE_NOT_FOUND, message)
    return _unreadable(printed, log, host) or _unresolvable(printed, host, advice)


def _unreadable(printed: str, log: str, host: str) -> StageError | None:
    """Return the failure of an index that did not answer; None: it did."""
    said = "\n".join([*_UNREAD.findall(log), *(line for line in printed.splitlines() if "ERROR" in line)])
    statuses = {int(one or other) for one, other in _STATUS.findall(f"{said}\n{printed}")}
    if statuses & {401, 403}:
        advice = f"correct the Secret of spec.conversion.indexSecretRef, or name one; {RETRY}"
        return StageError(Reason.SOURCE_ACCESS_DENIED, f"{host} answered {min(statuses & {401, 403})} to pip: {advice}")
    if found := _CERTIFICATE.search(said):
        advice = f"ask the administrator to add its authority to the Helm value sources.caBundle, {RETRY}"
        message = f"the certificate of {host} is not trusted: {found[1].strip() or 'it was not verified'}; {advice}"
        return StageError(Reason.INDEX_UNTRUSTED, message)
    if _BROKEN.search(said) or any(status >= 500 or status == 429 for status in statuses):
        why = f"it answered {max(statuses)}" if statuses else "the connection failed"
        advice = "check the Helm values sources.packageIndex, sources.proxy and networkPolicy.sources.egress"
        message = f"the package index {host} cannot be read: {why}; {advice}"
        return StageError(Reason.SOURCE_UNREACHABLE, message, final=False)
    return None


def _unresolvable(printed: str, host: str, advice: str) -> StageError:
    """Return the failure of requirements that the index cannot meet."""
    if found := _CONFLICT.search(printed):
        causes = "; ".join(" ".join(line.split()) for line in found[1].splitlines())
        causes = re.sub(r"The user requested \(constraint\) (\S+?)==(\S+)", r"the image has \1 \2", causes)
        causes = causes.replace("The user requested", "the requirements file asks for")
        message = f"no versions fit together: {_short(causes)}; change the requirements{advice}"
        return StageError(Reason.PACKAGE_NOT_FOUND, message)
    if found := _LACKING.search(printed):
        newest = ", ".join(found[2].split(", ")[-NAMED_VERSIONS:])
        there = "no wheel of it for this image" if newest == "none" else f"the versions {_short(newest, 200)}"
        python = _PYTHON.search(printed)
        others = f", and for other versions of Python {_short(python[1], 100)}" if python else ""
        message = f"{host} has nothing for {_short(found[1], 100)}: it has {there}{others}; packages are not built here"
        return StageError(Reason.PACKAGE_NOT_FOUND, message)
    if REFUSED in printed:
        message = f"a package would have to be built from its sources, but {REFUSED}: {_errors(printed)}"
        return StageError(Reason.PACKAGE_NOT_FOUND, message)
    return StageError(Reason.CRASHED, f"pip failed: {_errors(printed)}", final=False)


def _errors(printed: str) -> str:
    lines = printed.splitlines()
    # An exception's own words come last.
    errors = [] if "ERROR: Exception:" in lines else [line for line in lines if line.startswith("ERROR")]
    return _short(" | ".join(errors or lines[-3:]))


def _after(words: str, printed: str) -> str:
    """Return what comes after the line with these words."""
    return _short(printed[printed.index(words) :].partition("\n")[2])


def _short(text: str, most: int = QUOTED_CHARACTERS) -> str:
    plain = " ".join(printable(text).split())
    return plain if len(plain) <= most else f"{plain[:most]} ..."
