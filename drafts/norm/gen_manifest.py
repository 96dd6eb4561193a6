import sys
LANES = '''[lane.cpu]
ranks = true
speed_points = false
pairs = 7
''' + ''.join(f'''
[lane.{l}]
speed_points = true
r_full = 1.1
r_zero = %(zero)s
pairs = 25
apart = true
''' for l in ("h200", "h100", "b200"))
GPU = 'lanes = ["h100", "h200", "b200"]'
def case(name, cat, group, size, dtype, dist, ranked=False, lanes="", layout="", comment=""):
    s = (f"# {comment}\n" if comment else "") + f'[[case]]\nname = "{name}"\ncategory = "{cat}"\ngroup = "{group}"\nsize = {{ {size} }}\ndtype = "{dtype}"\ndistribution = "{dist}"\n'
    if ranked: s += "ranked = true\n"
    if lanes: s += lanes + "\n"
    if layout: s += f"layout = {{ {layout} }}\n"
    return s
def rc(r, c): return f"rows = {r}, cols = {c}"
