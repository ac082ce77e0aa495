"""python -m cafelearn is the command cafe."""

import sys

from cafelearn.cli import main

if __name__ == "__main__":
    sys.exit(main())
