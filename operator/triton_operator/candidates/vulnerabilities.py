"""The known vulnerabilities of tritonserver's releases that a client without any rights can use. Pure."""

from typing import NamedTuple

from triton_operator.candidates.server_image import release


class Vulnerability(NamedTuple):
    """One CVE."""

    cve: str
    score: float
    """Base score, CVSS 3.1."""
    fixed: str
    """The first release without it, as YY.MM."""


KNOWN = (
    Vulnerability("CVE-2025-23310", 9.8, "25.07"),
    Vulnerability("CVE-2025-23311", 9.8, "25.07"),
    Vulnerability("CVE-2025-23316", 9.8, "25.08"),
    Vulnerability("CVE-2026-24207", 9.8, "26.03"),
    Vulnerability("CVE-2026-47627", 9.8, "26.06"),
    Vulnerability("CVE-2025-23317", 9.1, "25.07"),
    Vulnerability("CVE-2025-23318", 8.1, "25.07"),
    Vulnerability("CVE-2025-23319", 8.1, "25.07"),
    Vulnerability("CVE-2025-23320", 7.5, "25.07"),
    Vulnerability("CVE-2025-23321", 7.5, "25.07"),
    Vulnerability("CVE-2025-23322", 7.5, "25.06"),
    Vulnerability("CVE-2025-23323", 7.5, "25.05"),
    Vulnerability("CVE-2025-23324", 7.5, "25.05"),
    Vulnerability("CVE-2025-23325", 7.5, "25.05"),
    Vulnerability("CVE-2025-23326", 7.5, "25.05"),
    Vulnerability("CVE-2025-23328", 7.5, "25.08"),
    Vulnerability("CVE-2025-23329", 7.5, "25.08"),
    Vulnerability("CVE-2025-23331", 7.5, "25.06"),
    Vulnerability("CVE-2025-33201", 7.5, "25.10"),
    Vulnerability("CVE-2025-33202", 7.5, "25.09"),
    Vulnerability("CVE-2025-33211", 7.5, "25.10"),
    Vulnerability("CVE-2025-33238", 7.5, "26.01"),
    Vulnerability("CVE-2025-33254", 7.5, "26.01"),
    Vulnerability("CVE-2026-16497", 7.5, "26.07"),
    Vulnerability("CVE-2026-24146", 7.5, "26.02"),
    Vulnerability("CVE-2026-24158", 7.5, "26.01"),
    Vulnerability("CVE-2026-24173", 7.5, "26.02"),
    Vulnerability("CVE-2026-24174", 7.5, "26.02"),
    Vulnerability("CVE-2026-24175", 7.5, "26.02"),
    Vulnerability("CVE-2026-24209", 7.5, "26.03"),
    Vulnerability("CVE-2026-24210", 7.5, "26.03"),
    Vulnerability("CVE-2026-24264", 7.5, "26.04"),
    Vulnerability("CVE-2026-47476", 7.5, "26.05"),
    Vulnerability("CVE-2026-47477", 7.5, "26.05"),
    Vulnerability("CVE-2026-47478", 7.5, "26.05"),
    Vulnerability("CVE-2026-47479", 7.5, "26.05"),
    Vulnerability("CVE-2026-47480", 7.5, "26.05"),
    Vulnerability("CVE-2026-47482", 7.5, "26.05"),
    Vulnerability("CVE-2026-47625", 7.5, "26.04"),
    Vulnerability("CVE-2026-47628", 7.5, "26.06"),
    Vulnerability("CVE-2026-47629", 7.5, "26.06"),
    Vulnerability("CVE-2026-24206", 7.3, "26.03"),
    Vulnerability("CVE-2026-47481", 6.5, "26.05"),
    Vulnerability("CVE-2026-47606", 6.5, "26.06"),
    Vulnerability("CVE-2025-23333", 5.9, "25.07"),
    Vulnerability("CVE-2025-23334", 5.9, "25.07"),
    Vulnerability("CVE-2026-24266", 5.9, "26.04"),
    Vulnerability("CVE-2026-24208", 5.3, "26.03"),
    Vulnerability("CVE-2026-24147", 4.8, "26.02"),
)
"""From NVIDIA's security bulletins until 2026-09-08 (github.com/NVIDIA/product-security), the worst first.

All have the attack vector Network and need no privileges. Others are left out, and so is CVE-2023-31036 (fixed in
23.11): it takes --model-control-mode=explicit, which only the private server of a search has, and no client reaches it.
"""
NAMED = 6
"""How many vulnerabilities a message names, so that it stays short; NVIDIA's bulletins have the others."""


def warning(image: str) -> str | None:
    """Say which known vulnerabilities a server image has, and which release to use; None: none, or none are known."""
    vulnerabilities = [each for each in KNOWN if (image_release := release(image)) and image_release < each.fixed]
    if not vulnerabilities:
        return None
    worst = ", ".join(f"{each.cve} (score {each.score})" for each in vulnerabilities[:NAMED])
    others = f" and {len(vulnerabilities) - NAMED} more" if len(vulnerabilities) > NAMED else ""
    return (
        f"image {image} has vulnerabilities that any client can use: {worst}{others}; use release"
        f" {max(each.fixed for each in vulnerabilities)} or later in spec.serving.image, or in the Helm value"
        " images.server"
    )
