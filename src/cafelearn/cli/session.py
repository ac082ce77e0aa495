"""Output streams, error messages and exit codes of all commands."""

import json
import logging
import math
import os
import sys
import time
import traceback
import warnings
from _thread import interrupt_main, start_new_thread
from contextlib import contextmanager

import typer

# Errors in the arguments or the data.
BAD_INPUT = (
    ValueError,
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
)
HIDDEN = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
WIDTH = 110  # of lines, in characters, if the output is not a terminal


class Session:
    """One run of a command: results go to stdout, progress and remarks to stderr.

    `facts` is a dict of the results and remarks. With --json, stdout gets only the facts, as
    one object at the end. With --quiet, only errors and, with --json, the facts are printed.
    """

    def __init__(self, command, quiet=False, as_json=False, debug=False):
        self.command, self.quiet, self.as_json, self.debug = command, quiet, as_json, debug
        self.facts = {"command": command, "remarks": []}
        self.lost = None  # the first error in writing to standard output
        # Commands print their own notes instead of the log messages.
        logging.getLogger("cafelearn").setLevel(logging.ERROR)

    def say(self, text="", style=None):
        """Print a line of the result."""
        if not (self.quiet or self.as_json):
            self._tell(sys.stdout, clean(text), style=style, soft_wrap=True)

    def show(self, title, table):
        """Print a rich table of the result."""
        if not (self.quiet or self.as_json):
            self._tell(sys.stdout)
            self._tell(sys.stdout, clean(title), style="bold", soft_wrap=True)
            self._tell(sys.stdout, table)

    def width(self):
        """Return the width of the output in characters."""
        return self._console(sys.stdout).width

    def note(self, text):
        """Print a line about the progress."""
        if not self.quiet:
            self._tell(sys.stderr, clean(text), style="dim", soft_wrap=True)

    def tell(self, text):
        """Print a line about the input, except with --json, because the facts contain it."""
        if not self.as_json:
            self.note(text)

    def remark(self, text):
        """Print a remark about the data or the result, and add it to the facts."""
        self.facts["remarks"].append(text)
        if not self.quiet:
            words = f"remark: {clean(one_line(text))}"
            self._tell(sys.stderr, words, style="yellow", soft_wrap=True)

    def finish(self):
        """Print the facts with --json; raise OSError if writing to standard output failed.

        A closed pipe is not an error: the files were written nevertheless.
        """
        with self._outliving(sys.stdout):
            if self.as_json:
                text = json.dumps(_plain(self.facts), ensure_ascii=False, allow_nan=False)
                sys.stdout.write(text + "\n")
            sys.stdout.flush()
        if self.lost is not None and not isinstance(self.lost, BrokenPipeError):
            raise OSError(self.lost.errno, self.lost.strerror, "standard output")

    def is_terminal(self):
        """Check whether standard error is a terminal."""
        return sys.stderr.isatty()

    def _tell(self, stream, *things, **options):
        with self._outliving(stream):
            self._console(stream).print(*things, **options)

    @contextmanager
    def _outliving(self, stream):
        """Silence a stream that can no longer be written to, so that the command continues."""
        try:
            yield
        except OSError as error:
            if stream is sys.stdout:
                self.lost = self.lost or error
            silence(stream)

    def _console(self, stream):
        from rich.console import Console

        class Plain(Console):
            def on_broken_pipe(self):
                raise  # instead of ending the process, as rich would

        width = None if stream.isatty() else WIDTH
        return Plain(file=stream, markup=False, highlight=False, emoji=False, width=width)

    def _warn(self, message, category, filename, lineno, file=None, line=None):
        if self.debug or not issubclass(category, HIDDEN):
            self.remark(str(message))


def silence(stream):
    """Discard the buffer of a stream and everything written to it later."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _interrupt_soon():
    time.sleep(0.02)
    interrupt_main()


@contextmanager
def _interrupts_heard():
    """Repeat an interrupt that arrived where Python ignores exceptions.

    For example, Python ignores exceptions in callbacks of the compiler.
    """
    before = sys.unraisablehook

    def hear(ignored):
        if not issubclass(ignored.exc_type, KeyboardInterrupt):
            before(ignored)
            return
        while True:
            try:
                start_new_thread(_interrupt_soon, ())
                return
            except KeyboardInterrupt:  # another interrupt may arrive during this handler
                continue

    sys.unraisablehook = hear
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def session(command, quiet=False, as_json=False, debug=False):
    """Run the body of a command in a Session; turn exceptions into messages and exit codes."""
    current = Session(command, quiet, as_json, debug)
    with warnings.catch_warnings(), _interrupts_heard():
        warnings.showwarning = current._warn
        try:
            yield current
            current.finish()
        except KeyboardInterrupt:
            sys.stderr.write(f"cafe {command}: interrupted\n")
            raise typer.Exit(130) from None
        except (BrokenPipeError, typer.Exit):
            raise
        except Exception as error:
            # `application.run` reports click's exceptions in the same format.
            if hasattr(error, "format_message"):
                raise
            if debug:
                traceback.print_exc()
            else:
                sys.stderr.write(f"cafe {command}: {clean(_words(error))}\n")
            raise typer.Exit(2 if isinstance(error, BAD_INPUT) else 1) from error


def one_line(text):
    """Replace line breaks and other runs of white space by single spaces."""
    return " ".join(str(text).split())


def clean(text):
    """Escape line breaks and other unprintable characters."""
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape").decode("ascii")
        for character in str(text)
    )


def _words(error):
    if isinstance(error, MemoryError):
        return f"out of memory. {one_line(error)}".strip()
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, (*BAD_INPUT, ImportError, OSError)):
        return one_line(error) or type(error).__name__
    return f"{type(error).__name__}: {one_line(error)} (--debug shows where)"


def _plain(value):
    """Convert facts to JSON types; NaN and infinite numbers become null, paths become text."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)
