"""The door: signed bytes in, remembered deliveries and typed events out."""
