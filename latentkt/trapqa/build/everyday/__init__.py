"""Everyday items from word associations: a strong association is the shortcut, a constraint decides.

strengths -> bank of cleaned associations -> seeds of the eight families -> scenes -> items, proved by rule.
"""
