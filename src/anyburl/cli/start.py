"""The entry point `anyburl`, which imports almost nothing before it handles interrupts."""

from __future__ import annotations

from anyburl.cli.early import handle_signals, ignore_signals, leave


def main() -> None:
    """Run the command line. While modules are being imported, an interrupt just ends the process; after a success, it
    changes nothing.
    """
    handle_signals(leave)
    from anyburl.cli.app import main as run

    try:
        run()
    except SystemExit as end:
        if not end.code:
            ignore_signals()
        raise
