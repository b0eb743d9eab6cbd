"""Files of rules: what a library uses at which size, for switching at run time."""
