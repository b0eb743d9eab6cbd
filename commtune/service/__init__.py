"""``commtune serve``: pages and an HTTP API over what is stored. It reads, and never writes."""
