"""Search spaces: which variables there are, their legal values, conditions and dangers."""
