"""Shell commands of the workspace, as tools."""
