"""An embedding that complements the rules: ComplEx, trained with PyTorch (extra `embed`), applied with NumPy."""
