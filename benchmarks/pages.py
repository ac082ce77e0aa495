"""Insert tables of measurements into pages of the documentation."""

from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def replace_part(page, name, text):
    """Replace the text of a page between the comments that begin and end the part `name`."""
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    path = DOCS / page
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page} needs the lines {begin} and {end}.")
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
