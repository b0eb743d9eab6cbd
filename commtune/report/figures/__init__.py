"""The report's pictures: what each shows, and how it becomes SVG for the page or a PNG."""
