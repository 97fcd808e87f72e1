"""HTTP: schemas, problems, routes. Translates, and decides nothing."""
