"""Shorten lists and names, and suggest names, for messages."""

import difflib


def listed(items, show=repr, most=8):
    """Return a text with the first `most` items and the number of the others."""
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
    """Return a suggestion of a similar known name in brackets; empty if there is none."""
    close = difflib.get_close_matches(str(name), [str(item) for item in known], n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
