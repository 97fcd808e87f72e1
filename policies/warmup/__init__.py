"""Queries made from the corpus itself, so that plans can be compared before anybody has asked."""
