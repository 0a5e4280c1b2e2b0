"""Agents: a character with tools and a workspace, whose turns survive. Source: CONTRACT H."""

from __future__ import annotations

from .personality import Agent, LollmsPersonality

__all__ = ["Agent", "LollmsPersonality"]
