"""What is odd about a data set: one file per check, each returning findings."""
