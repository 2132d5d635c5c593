"""Rule files: readers and writers. They import the columns, never the reverse."""
