"""The command `cafe`: parse the arguments and call the rest of the package."""

import sys

__all__ = ["main"]


def __getattr__(name):
    if name == "app":
        from cafelearn.cli.application import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main(args: list[str] | None = None) -> int:
    """Run the command `cafe`.

    Parameters
    ----------
    args : list of str, default=None
        The arguments after the name of the command; None means ``sys.argv[1:]``.

    Returns
    -------
    exit_code : int
        0 on success, 1 on failure, 2 for wrong usage or bad input, 130 after an interrupt.

    Examples
    --------
    >>> from cafelearn.cli import main
    >>> main(["--version"])
    cafe 0.1.0
    0
    """
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        sys.stderr.write(
            "cafe: the command needs the packages typer and rich: "
            "pip install 'cafelearn[cli]'\n"
        )
        return 1
    from cafelearn.cli.application import run

    return run(args)
