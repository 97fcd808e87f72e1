"""One module per version of the schema, newest last."""
