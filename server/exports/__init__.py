"""Everything that the course has of one person, as one file for them."""
