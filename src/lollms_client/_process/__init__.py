"""Child processes in one place: how they start, how they end, and that they never outlive their parent."""
