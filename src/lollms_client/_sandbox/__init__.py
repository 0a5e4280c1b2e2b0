"""Confinement by the operating system: a program runs in a child process that can do what its policy says, and no more."""
