"""The explorer: what was learned, questions and their reasons in a browser (extra `web`)."""
