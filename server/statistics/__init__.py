"""What a course looks like in numbers, for its staff.

numbers     counts in bins, medians: pure
statistics  one assignment, and a whole course: points, times, attempts, activity
parts       the queries behind it
clusters    failures that are the same, so that one announcement answers forty students
"""
