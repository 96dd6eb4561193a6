def add_one(x, out, n):
    out.copy_(x + 1)
