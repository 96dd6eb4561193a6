"""A course from term to term: its settings, its end, its next beginning, and when its people are forgotten."""
