"""What people wrote, as HTML.

markdown    handouts, write-ups, comments: `server.pages.markdown` has it made in a process of its own
spans       tokens of source code as HTML
"""
