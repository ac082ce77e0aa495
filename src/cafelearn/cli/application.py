"""The application `cafe`: register the commands and report wrong usage."""

import os
import sys
from typing import Annotated

import typer

import cafelearn
from cafelearn.cli.demo import demo
from cafelearn.cli.fit import fit
from cafelearn.cli.place import explain, transform
from cafelearn.cli.session import clean, one_line, silence

app = typer.Typer(
    name="cafe",
    help="Cluster-Adaptive Feature Extraction for tables.",
    epilog="Try: cafe demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# The modules of the commands delay slow imports until their command runs.
for _command in (demo, fit, transform, explain):
    app.command()(_command)


def _show_version(wanted: bool):
    if wanted:
        typer.echo(f"cafe {cafelearn.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
):
    """Cluster-Adaptive Feature Extraction for tables."""


def _open_streams():
    """Open closed standard streams (``>&-``) on the null device.

    Otherwise, a file opened later would get the descriptor of a stream and receive its output.
    """
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            if nowhere != descriptor:
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
            setattr(sys, name, open(descriptor, "w", closefd=False))  # noqa: SIM115


def _short_form(error, context):
    """Suggest the short form of an unknown long option, such as -k for --k."""
    wrong = getattr(error, "option_name", None) or ""
    if context is None or not wrong.startswith("--"):
        return ""
    known = {name for option in context.command.params for name in option.opts}
    short = wrong.removeprefix("-")
    return f" (did you mean {short}?)" if short in known else ""


def run(args):
    """Run the app and return an exit code; report wrong usage in one line on stderr."""
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        # Names in the data may contain characters that the terminal cannot encode.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(args, prog_name="cafe", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("cafe: interrupted\n")
        return 130
    except BrokenPipeError:
        # Nothing reads the pipe any more; discard the rest of the buffer.
        silence(sys.stdout)
        return 1
    except Exception as error:
        # Recognise click's exceptions by an attribute instead of their class, because typer
        # may import click or contain a copy of it.
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "cafe"
        message = one_line(error.format_message()).rstrip(".") + _short_form(error, context)
        if message:
            sys.stderr.write(f"{where}: {clean(message)}. Try '{where} --help'.\n")
        return getattr(error, "exit_code", 2)
