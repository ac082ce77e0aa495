"""A fuzzer: hostile fits, model files and tables, each checked in a process of its own.

Run it from the root of the repository::

    python -m tests.fuzz --minutes 10 --seed 1
    python -m tests.fuzz --only files --cases 20000 --workers 2
    python -m tests.fuzz --only fits --minutes 60 --workers 2 --seed 2
    python -m tests.fuzz --case '{"what": "fits", "seed": 7}'

A case is a small dictionary from which everything follows: the same case is the same data on
any machine. A finding is printed with the smallest case that still shows it.
"""

from importlib import import_module


def _function(module, name):
    """A function of a module that is imported when it is first called."""
    return getattr(import_module(f"tests.fuzz.{module}"), name)


# What there is to attack: the function that runs a case, the one that draws a new case, and
# the one that makes smaller cases.
WHAT = {
    "fits": lambda: _function("fits", "run"),
    "models": lambda: _function("files", "run_model"),
    "tables": lambda: _function("files", "run_table"),
}
DRAWS = {
    "fits": lambda rng: _function("cases", "draw")(rng),
    "models": lambda rng: _function("cases", "draw_model")(rng),
    "tables": lambda rng: _function("cases", "draw_table")(rng),
}
# What `--only` chooses.
GROUPS = {"files": ["models", "tables"]} | {what: [what] for what in WHAT}
SMALLER = {
    "fits": lambda case: _function("cases", "smaller")(case),
    "models": lambda case: _function("cases", "smaller_file")(case),
    "tables": lambda case: _function("cases", "smaller_file")(case),
}
