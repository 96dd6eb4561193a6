"""Looking at a course as one of its students would, at a chosen time: reads only, ends by itself, and is logged."""
