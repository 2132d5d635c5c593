"""Sends facts to a SPARQL endpoint or a database table."""
