"""Why a response does not hold a passage: which stage lost it."""
