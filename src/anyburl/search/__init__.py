"""Entities and relations by what people type: an id or a name, in part, in any case, with typing errors."""
