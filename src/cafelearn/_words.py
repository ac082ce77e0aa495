"""Short lists and suggestions for messages."""

import difflib


def listed(items, show=repr, most=8):
    """List the first few items and the number of the others."""
    items = list(items)
    shown = ", ".join(show(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"


def suggestion(name, known):
    """Suggest a similar known name, in brackets; empty if there is none."""
    close = difflib.get_close_matches(str(name), [str(item) for item in known], n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
