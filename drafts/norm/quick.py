"""facts/honest/shortcuts/oracle checks for scratch rungs, without the sandbox."""
import sys, importlib.util
sys.path.insert(0,'.')
from pathlib import Path
import torch
from autograder.assignment import load_assignment, load_families, Case
from autograder.judge.problem import load_problem
from autograder.judge.compare import compare
from autograder.judge import seeds
from autograder.verify import shortcuts, gaps
slug=sys.argv[1]; A=Path('/tmp/norm/assignments')/slug; R=Path('/tmp/norm/reference')/slug
a=load_assignment(A); p=load_problem(a,A)
spec=importlib.util.spec_from_file_location('f',R/'facts.py'); f=importlib.util.module_from_spec(spec); spec.loader.exec_module(f)
dists=sorted({c.distribution for c in a.cases}|{d for fam in load_families(R) for d in fam.distributions})
worst={}
for d in dists:
  for dt in ("float32","float16","bfloat16"):
    for size in (*f.SIZES, *[c.size for c in a.cases if max(c.size.values())<=5200][:6]):
      for _ in range(3):
        case=Case("x",size,dt,d); i=p.inputs(case,seeds.fresh_seed()); t=p.truth(case,i)
        for n,g in f.honest(**i).items():
            c=compare(g,t.expected[n],t.scale[n],a.tolerance[n])
            if a.tolerance[n].kind!='exact':
                err=(g.double()-t.expected[n]).abs(); q=(err/c.allowed.clamp(min=1e-300)); worst[dt]=max(worst.get(dt,0),float(q.nan_to_num(0).max()))
            if not c.right: print("HONEST WRONG",d,dt,size,n,int(c.wrong.sum()))
        for v in t.expected.values():
            if not torch.equal(v.isfinite(), v.to(getattr(torch,dt)).isfinite()): print("INF",d,dt,size)
print("honest share of allowed",worst)
print("shortcuts",shortcuts.find(A))
for g in gaps.find(A,R): print("gap",g)
