"""Running plans: stages, parallel calls, deadlines, partial results. Knows nothing of Ray or
HTTP.
"""
