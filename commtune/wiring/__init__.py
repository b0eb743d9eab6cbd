"""Builds benchmarks, schedulers and their jobs from settings, and fits campaigns to a machine."""
