import sys; sys.path.insert(0,"."); sys.path.insert(0,"./reference")
import torch, measure, time
from pathlib import Path
slug=sys.argv[1]; file=sys.argv[2]
from autograder.assignment import load_assignment
from autograder.contract import Lane
a=load_assignment(measure.ROOT/"assignments"/slug); pb=measure.load(measure.ROOT/"assignments"/slug/"problem.py")
e=getattr(measure.load(Path(file)),a.entry)
for c in a.cases_for(Lane.cpu):
    g=torch.Generator(); g.seed()
    i=pb.make_inputs(generator=g,dtype=getattr(torch,c.dtype),distribution=c.distribution,**c.size)
    v,o=measure.arguments(a,c,i); measure.poison(o); t=time.time(); e(*v); t=time.time()-t
    from autograder.judge.compare import compare
    ex,sc=pb.expected(**i),pb.error_scale(**i)
    r={}
    for n,x in o.items():
        err=(x.double()-ex[n]).abs(); al=torch.finfo(x.dtype).eps*sc[n]; f=ex[n].isfinite()
        r[n]=(int(compare(x,ex[n],sc[n],a.tolerance[n]).wrong.sum()), round(float((err/al)[f].max()) if f.any() else 0,3))
    print(c.name,r,f"{t:.2f}s")
