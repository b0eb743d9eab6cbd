"""Bundles of campaigns: rows are read from one database, checked, and merged into another."""
