"""Deduplication stores: in memory, in SQLite, in PostgreSQL, in Redis."""
