"""The tool libraries that come with this package; one folder each, discovered like any other."""
