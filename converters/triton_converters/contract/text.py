"""Safe handling of text that people read and that anybody may have written. Standard library only."""


def printable(text: str, replacement: str = " ") -> str:
    """Return the text without control characters, which a terminal would obey; tabs and line ends stay."""
    return "".join(each if each.isprintable() or each in "\n\t" else replacement for each in text)


def shortened(text: str, limit: int) -> str:
    """Return at most ``limit`` bytes of UTF-8, cut in the middle: what happened comes first, what to do comes last."""
    # A lone surrogate has no encoding, and the API server refuses it.
    plain = text.encode(errors="replace")
    if len(plain) <= limit:
        return plain.decode()
    head = plain[: limit // 3].decode(errors="ignore")
    return f"{head} ... {plain[-(limit - limit // 3 - 5) :].decode(errors='ignore')}"
