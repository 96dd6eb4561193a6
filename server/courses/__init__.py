"""Courses, who is in them, and their assignments."""
