"""Policies that learn which plan is worth its cost, and what they are made of."""
