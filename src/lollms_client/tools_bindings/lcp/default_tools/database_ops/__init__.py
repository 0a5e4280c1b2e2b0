"""SQLite databases and CSV files of the workspace, as tools."""
