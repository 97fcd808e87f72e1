"""A skill for Tactician: the passages that hold every code a query names."""
