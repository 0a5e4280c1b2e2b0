"""Who is asked in these tests."""

from __future__ import annotations


class Person:
    """Answers the same to everything, and remembers what was asked: (source, label) each."""

    def __init__(self, *answer):
        self.answer = answer or ("allow", "")
        self.asked = []

    def __call__(self, source, script_label, argv=None):
        self.asked.append((source, script_label))
        return self.answer
