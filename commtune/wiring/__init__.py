"""Builds the objects from settings: the only package that knows all adapters."""
