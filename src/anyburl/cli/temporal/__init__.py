"""The commands on facts with times and on runs with temporal rules."""
