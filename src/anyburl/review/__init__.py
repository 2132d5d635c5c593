"""Verdicts on predicted facts: accepted, rejected, withdrawn."""
