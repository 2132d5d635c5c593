"""Facts with a time, and rules that know when."""
