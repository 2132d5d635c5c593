"""An embedding of the graph beside its rules: ComplEx, trained by PyTorch (extra `embed`), applied by NumPy."""
