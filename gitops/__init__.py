"""Git, and nothing of ours."""
