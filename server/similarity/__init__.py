"""Which sources share what: a list for people to look at, never a verdict.

scope       what is compared with what
reduced     a source without what people change first: names, comments, layout
engine      fingerprints of reduced sources, and what two of them share (copydetect)
gather      the sources of a comparison, and what was handed out to everybody
runner      a comparison from its first source to its last pair; a process of its own does it
supervisor  starts that process where one waits; a part of the dispatcher
similarity  ask for a comparison, read what came of it, mark pairs
"""
