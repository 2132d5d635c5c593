"""Files of rules: who reads and who writes which. All of it imports the columns, never the reverse."""
