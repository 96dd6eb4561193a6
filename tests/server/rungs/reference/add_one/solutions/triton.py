# SECRET-OF-THE-STAFF: no student may ever see this line.
def add_one(x, out, n):
    out.copy_(x + 1)
