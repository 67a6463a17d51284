"""The decisions: an event in, intents and answers out."""
