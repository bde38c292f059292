"""Defending a mark: run one check again in the open, and list what changed between two gradings."""
