"""Learning replayed on queries for which every plan's outcome is known."""
