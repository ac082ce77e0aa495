"""Words for messages: lists and names that stay short, and what may have been meant."""

import difflib


def listed(items, show=repr, most=8):
    """The first few of some items, and how many more there are."""
    items = list(items)
    shown = ", ".join(show(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"


def shortened(name, length):
    """A name of at most `length` characters.

    The middle is left out of a long one: both its ends tell it from its neighbours.
    """
    text = str(name)
    if len(text) <= length:
        return text
    tail = length // 3
    return f"{text[: length - tail - 1]}…{text[-tail:]}"


def suggestion(name, known):
    """What may have been meant, in brackets; nothing if no known name is close."""
    close = difflib.get_close_matches(str(name), [str(item) for item in known], n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
