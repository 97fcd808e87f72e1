"""From feedback signals to one reward per request."""
