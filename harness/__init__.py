"""headcheck: how judging is done. Nothing here knows about attention."""

VERSION = "0.1.0"
