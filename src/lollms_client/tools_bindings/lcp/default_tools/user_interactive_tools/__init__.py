"""Questions to the person at the other end, as tools."""
