"""Reading what an instructor has on disk: layouts of learning platforms, archives, the roster, attempts, lateness."""
