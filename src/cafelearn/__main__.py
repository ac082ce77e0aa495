"""Run the command ``cafe`` with ``python -m cafelearn``."""

import sys

from cafelearn.cli import main

if __name__ == "__main__":
    sys.exit(main())
