"""The chaos run: a course's evening on a private installation, while everything that can break is broken.

    plan         who submits what and when, and which fault comes when: a pure function of the seed
    guard        the outermost process: whatever happens to the run, what it started ends
    services     private PostgreSQL and Redis
    proxy        TCP connections that can be cut, delayed, and left hanging
    supervisor   starts our processes, and starts again what dies, as supervisord would
    clocks       clocks that jump
    programs     our processes, and what they are told
    course       two courses in the database
    stage        all of it together
    faults       what is broken, one function for each kind
    load         the students: submit over HTTP, try again with the same key, and keep what was promised
    promises     what the server said it accepted
    checks       is everything accounted for? What is wrong, as a list that is empty at the end
    measures     counts, waiting times and times of recovery
    report       JSON, and the table in docs/reliability.md
    run          one run, from the seed to the report

`python -m tests.chaos --help` says how to run it; `make chaos` does. Loopback only; root is needed for one fault (a
full disk), and PostgreSQL's and Redis's servers have to be installed.
"""
