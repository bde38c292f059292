"""Grading a class: what is to be judged, who judges it, and the folder that keeps the results."""
