"""End worker processes when the process that started them ends.

A worker calls `end_with` before it imports the rest of the package, because that import takes
many seconds on a busy machine. This module therefore imports only modules that load fast.
"""

import os
import threading
import time


def end_with(parent):
    """End this process soon after its parent, the process with the id `parent`, ends.

    If the parent has already ended, end immediately. On systems other than POSIX, do nothing.
    """

    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    if os.name == "posix":
        if os.getppid() != parent:
            os._exit(1)
        threading.Thread(target=watch, daemon=True).start()
