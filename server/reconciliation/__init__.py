"""Whether every submission is accounted for: received = final + in flight, and what the tables promise of each one.

checks     what has to hold of the rows: one query each
balance    the accounts of some courses now, and the newest check of each, which the pages show
"""
