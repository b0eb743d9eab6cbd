"""commtune: find the environment variables that make communication fast, and prove it."""

__version__ = "0.1.0"
