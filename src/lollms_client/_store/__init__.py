"""What a stored conversation and a stored turn are: messages, turns, calls, artefacts, over SQLite or PostgreSQL."""
