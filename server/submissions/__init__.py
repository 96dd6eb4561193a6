"""What students hand in, and what everybody sees of it."""
