"""The explorer: rules, questions and reasons in a browser (extra `web`)."""
