"""What both fronts share.

    work        the unit of work: one request, one transaction, committed before the response is sent
    identity    who is asking: a cookie's login or a bearer token; cookies of logins and forms
    csrf        whether an unsafe request comes from our own page
    errors      errors as JSON for the API, and as whatever the pages registered for people
    limits      how long a body may be
    rates       how much a person and a network may ask for
    turns       one expensive page at a time for each person
    protocol    how large and how slow a request may be, where no proxy says so
    edge        headers on every response, one log line per request
    templates   what pages render with
    live        telling watchers that a submission changed

An endpoint asks for `Work` and `Someone` by type and never commits.
"""
