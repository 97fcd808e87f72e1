"""Trained policies as versioned artifacts: publish, promote, roll back, follow."""
