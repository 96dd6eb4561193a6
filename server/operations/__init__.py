"""Keeping an installation running: what its owner types, and what machines read.

rehearsals   chaos runs and what they found
doctor       what is wrong with an installation, and what to do
backup       everything that cannot be made again, as one file
restore      that file, into an empty database, checked
metrics      what Prometheus is told that stands in the database
"""
