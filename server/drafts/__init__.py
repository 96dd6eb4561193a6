"""What students wrote and have not handed in."""
