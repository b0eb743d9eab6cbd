"""The Python API: what ``import commtune`` gives. Its page is docs/python-api.md."""
