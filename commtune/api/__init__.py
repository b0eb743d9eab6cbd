"""The Python API, which ``import commtune`` provides; see docs/python-api.md."""
