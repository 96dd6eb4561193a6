"""The custom op in plain PyTorch, to read beside the starter: line by line the same, and wrong in the same places."""

import torch


@torch.library.custom_op("ladder::residual_norm", mutates_args=())
def residual_norm(
    x: torch.Tensor, r: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    # Your part: the residual stream and the weight are not used yet.
    s = x.clone(memory_format=torch.contiguous_format)
    mean_square = s.float().square().mean(dim=1, keepdim=True)
    return s, (s.float() * torch.rsqrt(mean_square + eps)).to(s.dtype)


@residual_norm.register_fake
def _(x, r, weight, eps):
    # For an x that lies column by column this is wrong: what does the op above return?
    return torch.empty_like(x), torch.empty_like(x)


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:3])


def backward(ctx, ds, dout):
    # A gradient for x, r, weight and eps, in this order. Which of them does out depend on, and which s?
    x, r, weight = ctx.saved_tensors
    return dout.clone(), dout.clone(), torch.zeros_like(weight), None


residual_norm.register_autograd(backward, setup_context=setup_context)
