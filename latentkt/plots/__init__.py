"""Figures: one function a figure, from result tables and theory alone."""
