"""Evaluations: how well a model does a job that can be checked by code. `lollms eval tools` is the one there is."""
