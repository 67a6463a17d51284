"""Ticket systems beside the forges: a forge is its own tracker."""
