"""The entry point `anyburl`, which imports almost nothing before it handles interrupts."""

from __future__ import annotations

from anyburl.cli.early import handle_signals, leave


def main() -> None:
    """Run the command line. While modules are being imported, an interrupt just ends the process."""
    handle_signals(leave)
    from anyburl.cli.app import main as run

    run()
