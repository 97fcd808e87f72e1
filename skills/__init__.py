"""Searching: value types, the skill protocol, skills, stores, encoders. Imports nothing of ours."""
