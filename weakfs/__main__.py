"""`python -m weakfs`: the same as the `weakfs` command."""

import sys

from weakfs.cli import main

if __name__ == "__main__":
    sys.exit(main())
