"""System descriptions: what is known of a machine, and who says so."""
