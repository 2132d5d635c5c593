"""What goes wrong with machines, done to every command that writes or runs long."""
