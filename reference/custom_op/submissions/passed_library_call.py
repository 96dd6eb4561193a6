"""torch's own functions as the op's implementation: right, and no kernel of the student's; staff are shown it."""

import torch


@torch.library.custom_op("ladder::residual_norm", mutates_args=())
def residual_norm(
    x: torch.Tensor, r: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    s = (x + r).contiguous()
    out = torch.nn.functional.rms_norm(s.float(), s.shape[1:], weight.float(), eps)
    return s, out.to(x.dtype).contiguous()


@residual_norm.register_fake
def _(x, r, weight, eps):
    return x.new_empty(x.shape), x.new_empty(x.shape)


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(output[0], inputs[2])
    ctx.eps = inputs[3]


def backward(ctx, ds, dout):
    s, weight = ctx.saved_tensors
    wide = s.float()
    factor = torch.rsqrt(wide.square().mean(1, keepdim=True) + ctx.eps)
    normal, dnormal = wide * factor, dout.float() * weight.float()
    dx = ds.float() + factor * (dnormal - normal * (dnormal * normal).mean(1, keepdim=True))
    return dx.to(s.dtype), dx.to(s.dtype), (dout.float() * normal).sum(0).to(weight.dtype), None


residual_norm.register_autograd(backward, setup_context=setup_context)
