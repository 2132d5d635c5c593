"""What is odd in a data set: one check a file, each returns findings."""
