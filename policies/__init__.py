"""Deciding: query analysis, plans, policies, experience, training, evaluation, experiments."""
