"""Sources: where documents come from. One kind a module."""
