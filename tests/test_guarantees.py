"""The page "What is guaranteed" names tests that exist."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "guarantees.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", PAGE)))


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_named_test_exists(file, name):
    assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")


def test_each_guarantee_names_its_test():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    kept = [line for line in rows if not line.endswith("| test |")]
    assert len(kept) > 20
    for line in kept:
        assert "`test_" in line or "fuzz" in line, line
