import numpy as np, sys
from scipy.special import log_ndtr, ndtr
v=np.linspace(1e-3,6.2,6000)
L=(log_ndtr(v)-log_ndtr(-v))/np.log(2)
w=ndtr(v)*ndtr(-v)*np.log(2)   # dPhi = w*dL
for deg in range(1,8):
    u=v*v
    A0=np.stack([v*u**k for k in range(deg+1)],1)
    wt=w.copy()
    for it in range(400):
        A=A0*wt[:,None]; s=np.abs(A).max(0)
        c=np.linalg.lstsq(A/s,L*wt,rcond=None)[0]/s
        e=np.abs((A0@c-L)*w)
        wt=wt*(1e-3+e/e.max())**0.06; wt/=wt.max()
        wt=np.maximum(wt,1e-30)
    f=np.float32
    vv=np.concatenate([-v[::-1],v]).astype(f)
    cf=c.astype(f); uu=np.minimum(vv*vv,f(38)); q=cf[-1]*np.ones_like(vv)
    for k in range(deg-1,-1,-1): q=(q*uu+cf[k]).astype(f)
    ph=1/(1+np.exp2(-(vv*q).astype(f)).astype(f))
    true=ndtr(vv.astype(float))
    err=np.abs(ph-true)/1.19e-7
    rel=np.abs(ph-true)/true
    m=vv>-5
    print(deg,"exact maxerr",e.max(),"f32 err in eps32",err.max(),"rel>-3",rel[vv>-3].max(),"rel>-5",rel[m].max(), list(map(float,cf)))
