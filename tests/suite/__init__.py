"""How the tests of this repository are run: in two parts, with no silent skip, within a budget.

`python -m tests.suite quick` is `make test`, `full` is `make test-full`, `rest` is the second without the first.
`plugin` is loaded by every pytest here, by hand too; `policy` reads the three files beside it.
"""
