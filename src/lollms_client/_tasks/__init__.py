"""Text tasks as functions over something that generates: summaries, analyses, questions, code, structured answers."""
