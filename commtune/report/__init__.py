"""The report of a campaign: a self-contained page and figures with results and method."""
