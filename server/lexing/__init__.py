"""Source code as tokens and lines, for whoever colours or compares it; what students wrote is never trusted to end.

    lexers     which lexer a language has, and its tokens, here and now
    apart      the same in a process of its own, up to a time (`server.apart`)
    lines      which lines of two versions are the same, up to a number of steps

Pygments' patterns backtrack: some sources of a hundred characters take years, and a match holds the interpreter, and
with it every other request of a web process. What is known to is left out in `lexers`; nobody knows all of it.
"""
