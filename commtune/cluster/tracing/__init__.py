"""Reads from a library's own output what it did in an untimed run; starts no processes."""
