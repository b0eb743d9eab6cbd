"""The figures of a report, as SVG for the page or as files such as PNG."""
