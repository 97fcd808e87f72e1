"""Drift: queries, what plans earn, or how skills do are no longer what they were. Noticed on the
recorded experience, off the path of requests; it raises exploration for a while.
"""
