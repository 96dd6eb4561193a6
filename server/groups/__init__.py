"""Students who do an assignment together.

groups      who is in which group: what everything that counts submissions asks
views       a group as its members and staff see it
forming     invite, join, leave
staffing    staff change a group with a reason
rows        what the last two share
"""
