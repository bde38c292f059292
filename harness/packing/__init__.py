"""Zips: the one file that a student hands in, and the bundles that a course hands out."""
