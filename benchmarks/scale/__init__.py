"""How time and memory grow with the graph: the steps that are measured, the fit, and the page."""
