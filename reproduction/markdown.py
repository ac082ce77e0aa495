"""Tables in GitHub's Markdown."""

import html
import re


def markdown_table(names, rows):
    """Format a table; column names and cells must already be Markdown."""
    names = list(names)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def escape(text):
    """Escape plain text for Markdown."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", html.escape(text, quote=False))
