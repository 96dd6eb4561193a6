"""The worker: one node's slot. It takes attempts from its queue, has the judge grade them, and signs what came of them.

    config      read once from the environment
    main        composes, consumes, drains
    grade       one attempt, from the task to its result
    attempts    folders of attempts, and which were claimed before
    bundles     assignment files by content hash
    judge       the judge's process
    processes   process trees
    results     signs and publishes
    aftermath   sees that a result arrived, and gives the server the files that an attempt left
    artefacts   reads those files
    server      what is asked by HTTP
    reports     says that the node is alive
    stopping    being asked to stop
    disk        room, and the lock on the node's folder
    errors      what goes wrong here; all of it is ours

It holds no database password, knows no table and no person, and imports no torch.
"""
