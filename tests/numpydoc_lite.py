"""Split a numpydoc docstring into its sections."""

import re


def sections(docstring):
    """Title to text of every underlined section."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", docstring or "", flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))
