"""Catalogues that describe the environment variables of communication libraries."""
