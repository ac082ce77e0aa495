"""End worker processes with the process that started them.

This module imports only what loads fast, so that a worker watches its parent before it imports
the rest of the package, which takes many seconds on a busy machine.
"""

import os
import threading
import time


def end_with(parent):
    """End this process soon after the process with id `parent` that started it has ended.

    The parent may have ended already: a worker takes time to start, and its tasks wait in a
    pipe.
    """

    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    if os.name == "posix":
        if os.getppid() != parent:
            os._exit(1)
        threading.Thread(target=watch, daemon=True).start()
