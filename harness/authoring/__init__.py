"""Tools for authors of exercises."""
