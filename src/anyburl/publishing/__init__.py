"""Facts to where graphs live: a SPARQL endpoint, or a table of a database."""
