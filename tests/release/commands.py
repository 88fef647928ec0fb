"""What readers type to install, upgrade and remove a release, out of the page that tells them.

test_cluster.py runs these. A command that the page gains, loses or moves fails here, or in test_parts.py.
"""

import re
from fnmatch import fnmatchcase

from hack.deploy.command import ROOT
from tests.page import BLOCK, blocks

PAGE = "docs/install.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
INLINE = re.compile(r"`((?:cosign|helm|kubectl) [^`\n]*[-/][^`\n]*)`")
"""A command within a sentence: it has an option or a path. Without one, as in `helm template`, it is a name."""


def typed() -> set[str]:
    """Return all commands of the page, those of a block together."""
    return {text for language, text in BLOCK.findall(TEXT) if not language} | set(INLINE.findall(BLOCK.sub("", TEXT)))


def inline(pattern: str) -> str:
    """Return the one command within a sentence that a pattern of fnmatch describes."""
    found = {each for each in INLINE.findall(BLOCK.sub("", TEXT)) if fnmatchcase(each, pattern)}
    assert len(found) == 1, f"{PAGE} has {sorted(found)} for {pattern!r}: say here which command it is now"
    return found.pop()


VERIFY = tuple(blocks(PAGE, "Verify"))
INSTALL, LOOK, PLUGIN, SERVE = blocks(PAGE, "Install")
(CPU,) = blocks(PAGE, "Values")
SHOW_VALUES = inline("helm show values *")
VALIDATE = inline("kubectl get td -A -o yaml *")
(UPGRADE,) = blocks(PAGE, "Upgrade")
(ROLL_BACK,) = blocks(PAGE, "Roll back")
HISTORY = inline("helm history *")
REMOVE, REMOVE_WITHOUT_HELM = blocks(PAGE, "Uninstall")
INSTALL_WITHOUT_HELM = inline("kubectl apply *")
DEFINITION = inline("helm template *")
RUN = {
    *VERIFY,
    *(INSTALL, LOOK, PLUGIN, SERVE, CPU, SHOW_VALUES, VALIDATE, UPGRADE, ROLL_BACK, HISTORY, REMOVE),
    *(INSTALL_WITHOUT_HELM, DEFINITION, REMOVE_WITHOUT_HELM),
}
"""What test_cluster.py runs; its last test compares."""
(ARCHIVE,) = blocks(PAGE, "The plugin without Python")
"""What test_release.py runs."""
NOT_RUN = {
    BLOCK.findall(TEXT)[0][1]: "its values are the suite's registry and versions",
    inline("helm install *"): "the reader fills in a digest; without one it is INSTALL",
    inline("kubectl triton validate *"): "the folder is the reader's; VALIDATE reads the cluster's objects",
    inline(
        "kubectl triton update-images *"
    ): "it measures all objects again; tests/report/test_update_images.py tries it",
}
"""The commands of the page that no test of this suite types, and why."""
