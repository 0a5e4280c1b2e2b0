"""Language model backends, one folder each, loaded by name."""
