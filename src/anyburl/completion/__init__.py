"""Every new fact that the rules imply, with its score."""
