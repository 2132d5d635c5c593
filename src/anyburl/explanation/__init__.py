"""Why a triple is predicted: the rules behind it, with the facts that make them fire."""
