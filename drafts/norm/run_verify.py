import sys; sys.path.insert(0,'.')
from pathlib import Path
import time
from autograder.judge import References
from autograder.sandbox.process import ProcessSandbox
from autograder.verify import trials
slug=sys.argv[1]; want=sys.argv[2:]
A=Path('/tmp/norm/assignments')/slug; R=Path('/tmp/norm/reference')/slug
sb=ProcessSandbox(); rf=References(sb); t0=time.time(); bad=0
plan=list(trials.plan(A,R)); order={"mutant":0,"starter":1,"solution":2,"submission":3,"milestone":4}
plan.sort(key=lambda t:(order[t.kind],t.verdict=="passed"))
for t in plan:
    if want and not any(x in t.name for x in want): continue
    o=trials.run(t,A,R,sb,rf); 
    if not o.as_planned: bad+=1
    print(f"{time.time()-t0:5.0f} {o.seconds:5.1f} {'ok ' if o.as_planned else 'BAD'} {t.kind} {t.language} {t.name} {o.verdict} {','.join(o.failed)[:60]} {o.deviation[:300]}",flush=True)
print("bad",bad); rf.close(); sb.close()
