"""Graphs for the eye: where nodes and arrows stand, and the SVG that shows them."""
