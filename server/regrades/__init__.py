"""Grading again: proposals of staff, and requests of students.

selection    which submissions a proposal is about
proposing    drafting a proposal
lifecycle    what people do to it: start, pause, apply, discard, roll back
runner       what is done for one bit by bit: queue, compare, apply, roll back
steps        the same by name, for pages and the API
moving       letting what was found count, and giving back what counted
news         telling students whose points changed
views        what pages, API and exports show of proposals
requests     a student asks, staff answer
asking       whether a student may ask
telling      what is said in a thread, and who is told
remeasuring  the first step of a request: its times are taken once more
inbox        the staff's list of requests, and what is counted
boards       who would leave a leaderboard, or lose a record
tables       a proposal as CSV
rules        what a course lets its students ask
"""
