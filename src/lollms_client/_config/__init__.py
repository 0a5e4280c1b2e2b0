"""What a configuration is made of: its keys, its files, the layers that it is read from, references to secrets, checks."""
