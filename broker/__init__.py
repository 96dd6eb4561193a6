"""What server and worker share to talk to each other; neither imports the other.

    app          the Celery application both make, every setting with its reason
    filesystem   the broker of the embedded form: a folder
    access       what a node may do at the broker, and by which name
    identity     a node's key pair, and what it signs with it
    envelope     what a node puts on the results queue
    logs         how processes log, with one id from request to result

The database is the queue of record (`server.grading`). Messages here are only what a free slot runs now and what came
of it; losing one costs time, never a submission.
"""
