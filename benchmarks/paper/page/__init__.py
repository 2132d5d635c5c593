"""The page with the results: one file for each table or figure, all from JSON."""
