"""Files of the workspace, as tools."""
