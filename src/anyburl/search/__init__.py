"""Finds entities and relations from what people type: an id or a name, parts of it, in any case, with typos."""
