"""What happens before a due date, in simulated time.

arrivals   who hands in when: a seeded model of a term's last hours
plan       how long they would wait, worked out in a moment for staff who set a date
"""
