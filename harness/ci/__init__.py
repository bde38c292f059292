"""Grading what a pull request changed: only its files come from the pull request, never what judges them."""
