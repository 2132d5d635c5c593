"""`python -m anyburl`: the command line."""

from __future__ import annotations

from anyburl.cli.start import main

if __name__ == "__main__":
    main()
