"""Measuring plans and policies on queries whose relevant documents are known. No execution here:
what runs a plan is handed in.
"""
