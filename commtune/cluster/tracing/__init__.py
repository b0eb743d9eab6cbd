"""Tracing: what a library says of what it did, per library; nothing is run here."""
