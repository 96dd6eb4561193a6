import sys,time
from pathlib import Path
from autograder.verify import gaps, shortcuts, trials
from autograder.judge import References
from autograder.sandbox.process import ProcessSandbox
slug=sys.argv[1]; only=sys.argv[2:] 
A,R=Path("assignments")/slug,Path("reference")/slug
if not only:
    for g in (*gaps.find(A,R),*shortcuts.find(A)): print("GAP",g)
sb=ProcessSandbox(); refs=References(sb); t0=time.time()
for t in trials.plan(A,R):
    name=f"{t.language}-{t.kind}-{t.name}"
    if only and not any(o in name for o in only): continue
    o=trials.run(t,A,R,sb,refs)
    print("ok " if o.as_planned else "BAD",f"{o.seconds:5.1f}",name,o.verdict,o.failed, [f"{m.submission_us if hasattr(m,'submission_us') else ''}" for m in o.measurements] if 0 else "", o.deviation[:600],flush=True)
print(time.time()-t0); refs.close(); sb.close()
