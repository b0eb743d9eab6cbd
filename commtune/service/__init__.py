"""``commtune serve``: web pages and an HTTP API of a database, which it never writes."""
