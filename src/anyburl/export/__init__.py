"""Rules in the languages of other systems, one file per language."""
