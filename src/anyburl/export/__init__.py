"""Rules in the languages of other systems: one language a file."""
