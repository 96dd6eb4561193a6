"""One machine that does everything: `ladder up`, `ladder down`, `ladder demo`.

home         the folder of an installation, and the lock that one `up` holds
processes    the four processes, as a configuration for supervisord
seed         the demo course, its accounts and the embedded node, by the commands that staff type
up           prepares, starts, waits until something can be graded, and stops in order
demo         hands in five kernels as a student would and checks what becomes of them
"""
