"""The same as the `weakfs` command: `python -m weakfs.cli`."""

import sys

from weakfs.cli import main

if __name__ == "__main__":
    sys.exit(main())
