"""Graphs that live elsewhere: SPARQL endpoints and SQL databases, by their addresses."""
