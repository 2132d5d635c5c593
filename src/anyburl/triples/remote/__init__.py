"""Remote graphs: SPARQL endpoints and SQL databases, by address."""
