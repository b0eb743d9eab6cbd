"""The catalogue: what the environment variables of communication libraries are."""
