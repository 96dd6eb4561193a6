"""Announcements: what the staff of a course tell everybody in it."""
