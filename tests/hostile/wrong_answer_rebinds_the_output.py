"""Points the output's tensor at another memory, in the three ways torch has."""

CALLS = 0


def vector_add(x, y, out, n):
    global CALLS
    CALLS += 1
    answer = x + y
    if CALLS % 3 == 1:
        out.data = answer
    elif CALLS % 3 == 2:
        out.set_(answer)
    else:
        out.resize_(0)
        out.resize_(n)
        out.data = answer
