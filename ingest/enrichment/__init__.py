"""What is known of a passage beside its text. One kind of knowledge a module."""
