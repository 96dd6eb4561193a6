"""The command `ladder`: what a student types, and the door to everything that staff start.

    main           the group of commands
    commands       one module per group: account, assignments, grading, staff
    api            the server's API as methods; every failure becomes a ClientError
    account        where the token is kept
    workspace      a rung's folder on the student's machine
    live, show     what is printed while something is graded, and after
    local          one machine that does everything: `up`, `down`, `demo`

The base installation has this, four small packages and no torch. What needs more is loaded late, by name, and says
which extra is missing.
"""
