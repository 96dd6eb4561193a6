"""Mistakes that students make, as edits of right kernels, and what the page says of each."""
