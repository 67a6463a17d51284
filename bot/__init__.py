"""The life of a run: what was asked, what is held, what goes on, what was seen."""
