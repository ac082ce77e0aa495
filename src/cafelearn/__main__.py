"""Run the command cafe as ``python -m cafelearn``."""

import sys

from cafelearn.cli import main

if __name__ == "__main__":
    sys.exit(main())
