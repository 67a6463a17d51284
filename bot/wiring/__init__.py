"""Puts the parts together. This package is the one that knows everyone; only the command line imports it."""
