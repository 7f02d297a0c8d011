"""Exploration: many ways to compute one program on one device, found, searched, measured and remembered."""
