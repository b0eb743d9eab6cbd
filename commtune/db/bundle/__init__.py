"""Campaigns as rows that belong to no database: read from one, checked, merged into another."""
