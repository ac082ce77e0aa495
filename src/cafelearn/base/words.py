"""Text of messages: shortened lists and names, and suggestions of similar names."""

import difflib


def listed(items, show=repr, most=8):
    """List the first `most` items as text, followed by the number of the others."""
    items = list(items)
    shown = ", ".join(show(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"


def shortened(name, length):
    """Shorten a name to at most `length` characters.

    The middle of a long name is left out, because names often differ at their ends.
    """
    text = str(name)
    if len(text) <= length:
        return text
    tail = length // 3
    return f"{text[: length - tail - 1]}…{text[-tail:]}"


def suggestion(name, known):
    """Return a similar known name as a question in brackets; empty if there is none."""
    close = difflib.get_close_matches(str(name), [str(item) for item in known], n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
