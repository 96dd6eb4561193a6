"""What server and worker share to talk to each other; neither imports the other.

    app          the Celery application both make, every setting with its reason
    filesystem   the broker of the embedded form: a folder
    access       what a node may do at the broker, and by which name
    envelope     what a node signs and the recorder verifies
    logs         how processes log, with one id from request to result

The database is the queue of record (`server.grading`). Messages here are only what a free slot runs now and what came
of it; losing one costs time, never a submission.
"""
