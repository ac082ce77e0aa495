"""End worker processes with the process that started them.

This module imports nothing that takes time: a worker begins to watch before it imports the
rest, which takes many seconds on a busy machine.
"""

import os
import threading
import time


def end_with(parent):
    """End this process soon after the process `parent` that started it, however that ended.

    It may have ended already: a worker takes a moment to start, and finds its tasks in a pipe.
    """

    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    if os.name == "posix":
        if os.getppid() != parent:
            os._exit(1)
        threading.Thread(target=watch, daemon=True).start()
