"""Whether a call is right, and what is wrong with it.

`problem` draws inputs (`seeds`) and has the oracle; `cases` draws hidden cases; `checker` makes a call and compares it
(`compare`); `parallel_cases` deals cases to several runners. `explain`, `patterns`, `facts` and `clues` describe a
wrong output, and `summary` is what a student reads first.
"""
