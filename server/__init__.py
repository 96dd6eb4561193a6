"""The server: people, courses, the queue of record, and the pages. No torch, no Docker.

    app                       composes
    api/ pages/               fronts: parse, authorise, render; Pydantic and Jinja2 stand here
    http/                     what both fronts share: the unit of work, who is asking, CSRF, templates, live events
    leaderboard grading submissions nodes courses accounts audit
                              one folder or module per feature; each may call those to its right
    models db config errors

`dispatcher`, `recorder` and `cli` are the other entry points, beside `app`. One request is one transaction, committed
at the edge (`server.db`); messages leave after the commit.
"""
