"""The runner: loads one submission and calls it, inside the sandbox. It never judges; whatever it says is a claim.

python -c BOOTSTRAP zygote    imports a language's toolchain, then forks one shut-in runner per request
"""
