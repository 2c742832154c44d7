"""What a receiver remembers, and for how long: in memory, in SQLite, in PostgreSQL, in Redis."""
