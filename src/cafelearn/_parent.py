"""End worker processes when the process that started them ends.

This module imports only modules that load fast, so that a worker watches its parent before it
imports the rest of the package, which takes many seconds on a busy machine.
"""

import os
import threading
import time


def end_with(parent):
    """End this process soon after the process that started it, with the id `parent`, ends.

    If the parent has already ended, because a worker takes time to start, end immediately.
    """

    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    if os.name == "posix":
        if os.getppid() != parent:
            os._exit(1)
        threading.Thread(target=watch, daemon=True).start()
