"""Words for messages: lists that stay short, and what may have been meant."""

import difflib


def listed(items, show=repr, most=8):
    """The first few of some items, and how many more there are."""
    items = list(items)
    shown = ", ".join(show(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"


def suggestion(name, known):
    """What may have been meant, in brackets; nothing if no known name is close."""
    close = difflib.get_close_matches(str(name), [str(item) for item in known], n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
