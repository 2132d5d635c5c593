"""Draws graphs: places nodes and arrows, and writes the SVG."""
