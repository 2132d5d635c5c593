"""The entry point `anyburl`, which imports almost nothing before it handles interrupts."""

from __future__ import annotations

from anyburl.cli.early import handle_signals, ignore_signals, lacks_memory, leave, leave_without_memory


def main() -> None:
    """Run the command line. While modules are being imported, an interrupt just ends the process, and so does want of
    memory; after a success, an interrupt changes nothing.
    """
    handle_signals(leave)
    try:
        from anyburl.cli.app import main as run

        run()
    except SystemExit as end:
        if not end.code:
            ignore_signals()
        raise
    except Exception as error:  # before a command has begun, or after it has ended
        if not lacks_memory(error):
            raise
        leave_without_memory()
