"""An embedding of the graph beside its rules: ComplEx, trained by PyTorch (extra `embed`), applied by NumPy."""

from __future__ import annotations

from anyburl.embedding.embed import embed
from anyburl.embedding.model import Embedding
from anyburl.embedding.options import EmbedOptions
from anyburl.embedding.stored import load_embedding

__all__ = ["EmbedOptions", "Embedding", "embed", "load_embedding"]
