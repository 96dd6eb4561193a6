"""What staff decide about each rung of a course, on top of what its files say."""
