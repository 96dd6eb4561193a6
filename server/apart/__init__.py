"""Work on what people wrote, in a process of its own: whatever it costs, it holds up nobody else.

    asking     give a function there something to do, up to a time; answers are kept
    process    that process

A web process has one interpreter for all of its requests. What a student wrote is laid out, coloured and compared here
instead: each piece may take so much processor time and make so much of it, and the page says so where that was not
enough.
"""
