"""NVFP4: blocks of 16 values with a scale each, and where those scales lie. Answers are bits, so every rounding counts.

With RN as rounding to float32, to nearest and ties to even, for every block of 16 values x of a row:

    u = RN(RN(max |x| · global_scale) / 6),    S = E4M3(min(u, 448)),
    r = RN(global_scale / S),  0 where S is 0,    code = E2M1(|RN(x · r)|),    nibble = 8 · sign bit of x + code

E4M3 and E2M1 round to nearest, ties to even; E2M1 gives 6 for whatever is larger. Here RN is made from float64: a
product of two float32 numbers is exact in it, and a quotient rounded to 53 bits and then to 24 is the same as rounded
once, as 53 ≥ 2 · 24 + 2 (Figueroa 1995). The small types are rounded in float64 to multiples of their step.

Subnormal float32 numbers decide nothing: `global_scale` lies between 2^-100 and 2^100, so r is normal, a product in the
subnormal range is far below half of the least scale, and a value that small has code 0 and keeps its sign.

Inputs are drawn in float32, as they are drawn anew for every call that is timed. Answers are made some rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

BLOCK = 16
TILE_ROWS, TILE_BLOCKS = 128, 4
LARGEST, LEAST = 448.0, 2.0**-9
"""Of E4M3: the largest number, and the least one above 0."""
LARGEST_E2M1 = 6.0
TIES = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
"""Half-way between two numbers of E2M1."""
VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
PIECE = 2**25
"""Values of x that are widened to float64 at once."""


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, blocks: int
) -> dict[str, torch.Tensor]:
    """Return `x` (rows, 16 · blocks), finite, and `global_scale` of no dimensions (float32, 2^-100 to 2^100)."""
    x, global_scale = _DISTRIBUTIONS[distribution](generator, rows, blocks, dtype)
    return {"x": x.to(dtype).view(rows, BLOCK * blocks), "global_scale": global_scale.float()}


def expected(*, x: torch.Tensor, global_scale: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return `packed` (rows, 8 · blocks) and `scales` (tiles of 128 rows, tiles of 4 blocks, 512), both uint8."""
    rows, blocks = x.shape[0], x.shape[1] // BLOCK
    packed = torch.empty(rows, BLOCK // 2 * blocks, dtype=torch.uint8, device=x.device)
    codes = torch.empty(rows, blocks, dtype=torch.uint8, device=x.device)
    step = max(1, PIECE // x.shape[1])
    for start in range(0, rows, step):
        part = slice(start, start + step)
        packed[part], codes[part] = _quantised(x[part].view(-1, blocks, BLOCK), global_scale.double())
    return {"packed": packed, "scales": tiled(codes)}


def tiled(codes: torch.Tensor) -> torch.Tensor:
    """Codes of scales (rows, blocks) in tiles of 128 × 4: (tiles of rows, tiles of blocks, 512), zeros as padding."""
    rows, blocks = codes.shape
    down, across = -(-rows // TILE_ROWS), -(-blocks // TILE_BLOCKS)
    whole = codes.new_zeros(down * TILE_ROWS, across * TILE_BLOCKS)
    whole[:rows, :blocks] = codes
    # Row 32 q + l of a tile, block k: at 16 l + 4 q + k.
    tiles = whole.view(down, 4, 32, across, TILE_BLOCKS).permute(0, 3, 2, 1, 4)
    return tiles.reshape(down, across, TILE_ROWS * TILE_BLOCKS)


def _quantised(x: torch.Tensor, global_scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Bytes of two values each (rows, 8 · blocks), and codes of scales (rows, blocks), of x (rows, blocks, 16)."""
    wide = x.double()
    scale = _e4m3(_rn(_rn(wide.abs().amax(dim=2) * global_scale) / 6))
    factor = torch.where(scale > 0, _rn(global_scale / scale), 0.0)
    codes = _e2m1_code(_rn(wide.abs() * factor[:, :, None])) + 8 * torch.signbit(x)
    low, high = codes[:, :, 0::2], codes[:, :, 1::2]
    return (low + 16 * high).to(torch.uint8).flatten(1), _e4m3_code(scale)


def _rn(value: torch.Tensor) -> torch.Tensor:
    return value.float().double()


def _to_step(value: torch.Tensor, least_exponent: int, fraction_bits: int) -> torch.Tensor:
    """Not negative numbers, rounded to so many bits after the first; below 2^least_exponent the step stays the same."""
    exponent = torch.frexp(value).exponent.sub(1).clamp(min=least_exponent)
    step = torch.ldexp(torch.ones_like(value), exponent - fraction_bits)
    return (value / step).round() * step


def _e4m3(value: torch.Tensor) -> torch.Tensor:
    return _to_step(value.clamp(max=LARGEST), -6, 3)


def _e4m3_code(value: torch.Tensor) -> torch.Tensor:
    """Codes of numbers of E4M3, uint8: exponent + 7 above three bits; below 2^-6 a multiple of 2^-9."""
    exponent = torch.frexp(value).exponent.sub(1)
    normal = (exponent + 6) * 8 + torch.ldexp(value, 3 - exponent)
    return torch.where(value < 8 * LEAST, value / LEAST, normal).to(torch.uint8)


def _e2m1_code(value: torch.Tensor) -> torch.Tensor:
    rounded = _to_step(value.clamp(max=LARGEST_E2M1), 0, 1)
    # Twice the number up to 2, then 5 for 3, 6 for 4, 7 for 6.
    return torch.where(rounded <= 2, 2 * rounded, torch.where(rounded <= 4, rounded + 2, 7.0))


# --- what is drawn: every function returns x (rows, blocks, 16) and the global scale ---------------------------------

Drawn = tuple[torch.Tensor, torch.Tensor]


def _readable(generator: torch.Generator, rows: int, blocks: int, _: torch.dtype) -> Drawn:
    """Numbers of E2M1 times 2, 12 among them: with a global scale of 1 every block's scale is 2."""
    values = torch.tensor(VALUES, device=generator.device)
    x = 2 * values[_integers(generator, (rows, blocks, BLOCK), 0, 7).long()] * _sign(generator, (rows, blocks, BLOCK))
    _put(generator, x, torch.full((rows, blocks), 12.0, device=x.device))
    return x, torch.ones((), device=x.device)


def _spread(generator: torch.Generator, rows: int, blocks: int, _: torch.dtype) -> Drawn:
    """Normal, blocks of magnitudes over five decades, the global scale that brings the largest scale near 448."""
    x = torch.randn(rows, blocks, BLOCK, generator=generator, device=generator.device)
    x *= 10 ** _uniform(generator, (rows, blocks, 1), -4, 1)
    return x, 6 * LARGEST / x.abs().amax() * _uniform(generator, (), 0.8, 1.0)


def _ties(generator: torch.Generator, rows: int, blocks: int, _: torch.dtype) -> Drawn:
    """Values half-way between two numbers of E2M1, in blocks whose scales are powers of two: all products are exact."""
    return _half_way(generator, torch.full((rows, blocks), 8.0, device=generator.device))


def _near_ties(generator: torch.Generator, rows: int, blocks: int, _: torch.dtype) -> Drawn:
    """The same by other scales: no reciprocal is exact, and a product may fall beside the tie."""
    return _half_way(generator, _integers(generator, (rows, blocks), 9, 15))


def _half_way(generator: torch.Generator, eighths: torch.Tensor) -> Drawn:
    """Values half-way between two numbers of E2M1, times so many eighths of a power of two for each block."""
    shape = (*eighths.shape, BLOCK)
    ties = torch.tensor(TIES, device=generator.device)[_integers(generator, shape, 0, len(TIES) - 1).long()]
    scale = eighths * 2.0 ** _integers(generator, eighths.shape, -6, 1)
    x = ties * _sign(generator, shape)
    _put(generator, x, torch.full_like(eighths, LARGEST_E2M1))
    power = 2.0 ** (_integers(generator, (), 1, 3) * _sign(generator, ()))
    return x * scale[:, :, None] / power, power


def _scale_ties(generator: torch.Generator, rows: int, blocks: int, dtype: torch.dtype) -> Drawn:
    """Scales half-way between two numbers of E4M3 or a unit beside it, by a global scale that is no power of two."""
    global_scale = 2.0 ** _integers(generator, (), -2, 3) * _uniform(generator, (), 1, 2)
    sixteenths = 2 * _integers(generator, (rows, blocks), 8, 15) + 1
    tie = sixteenths * 2.0 ** _integers(generator, (rows, blocks), -11, 3)
    # Half a step of the least number too, which goes to 0.
    tie[_uniform(generator, (rows, blocks), 0, 1) < 1 / 16] = LEAST / 2
    peak = (6 * tie.double() / global_scale.double()).to(dtype)
    unit = 2.0 ** (torch.frexp(peak.double()).exponent - 1) * torch.finfo(dtype).eps
    peak = peak.double() + _integers(generator, (rows, blocks), -1, 1) * unit
    x = peak.float()[:, :, None] * _uniform(generator, (rows, blocks, BLOCK), -0.9, 0.9)
    _put(generator, x, peak.float())
    return x, global_scale


def _extremes(generator: torch.Generator, rows: int, blocks: int, dtype: torch.dtype) -> Drawn:
    """Zeros with signs, scales that are subnormal, vanish or saturate, single peaks, subnormal values."""
    global_scale = 2.0 ** _integers(generator, (), -1, 5) * _uniform(generator, (), 1, 2)
    targets = torch.tensor(
        [0.0, LEAST / 8, LEAST * 0.49, LEAST * 0.51, LEAST * 2.5, LEAST * 7.6, 1.0, 447.0, 456.0, 500.0, 600.0],
        device=generator.device,
    )
    target = targets[_integers(generator, (rows, blocks), 0, len(targets) - 1).long()]
    peak = 6 * target / global_scale
    x = peak[:, :, None] * _uniform(generator, (rows, blocks, BLOCK), -1, 1)
    # Some blocks are zeros and values that vanish beside one peak.
    sparse = (_uniform(generator, (rows, blocks, 1), 0, 1) < 0.3) & (_uniform(generator, x.shape, 0, 1) < 0.8)
    x = torch.where(sparse, x * 0.0, x)
    _put(generator, x, peak)
    tiny = torch.finfo(dtype).smallest_normal * _uniform(generator, x.shape, -1, 1)
    return torch.where((_uniform(generator, (rows, blocks, 1), 0, 1) < 0.1), tiny, x), global_scale


def _vast(generator: torch.Generator, rows: int, blocks: int, dtype: torch.dtype) -> Drawn:
    """All magnitudes of the type, by a global scale with which a product may pass float32's largest number."""
    finfo = torch.finfo(dtype)
    low, high = max(-90.0, 2 * float(torch.tensor(finfo.tiny).log2())), float(torch.tensor(finfo.max).log2()) - 1
    x = 2 ** _uniform(generator, (rows, blocks, 1), low, high) * _uniform(generator, (rows, blocks, BLOCK), -1, 1)
    return x, 2.0 ** _integers(generator, (), 10, 60)


def _subnormal(generator: torch.Generator, rows: int, blocks: int, dtype: torch.dtype) -> Drawn:
    """Values below the type's least normal number, by a global scale near 2^23: only float16 has such that count."""
    x = torch.finfo(dtype).smallest_normal * _uniform(generator, (rows, blocks, BLOCK), -1, 1)
    x *= 2 ** _uniform(generator, (rows, blocks, 1), -9, 0)
    return x, 2.0**23 * _uniform(generator, (), 0.5, 1)


def _mixed(generator: torch.Generator, rows: int, blocks: int, dtype: torch.dtype) -> Drawn:
    """Rows of several kinds in one matrix, by the global scale of the first; the others are brought to it."""
    kinds = (_scale_ties, _extremes, _spread)
    x, global_scale = kinds[0](generator, rows, blocks, dtype)
    for number, make in enumerate(kinds[1:], start=1):
        count = len(range(number, rows, len(kinds)))
        if count:
            other, own = make(generator, count, blocks, dtype)
            x[number :: len(kinds)] = other * (own / global_scale)
    order = torch.randperm(rows, generator=generator, device=generator.device)
    return x[order], global_scale


def _put(generator: torch.Generator, x: torch.Tensor, peak: torch.Tensor) -> None:
    """Write `peak` (rows, blocks) with a sign at a random place of every block of x (rows, blocks, 16)."""
    place = _integers(generator, peak.shape, 0, BLOCK - 1).long()
    x.scatter_(2, place[:, :, None], (peak * _sign(generator, peak.shape))[:, :, None])


def _integers(generator: torch.Generator, shape: tuple[int, ...], low: int, high: int) -> torch.Tensor:
    """Whole numbers from `low` to `high`, both among them, in float32."""
    return torch.randint(low, high + 1, shape, generator=generator, device=generator.device).float()


def _uniform(generator: torch.Generator, shape: tuple[int, ...], low: float, high: float) -> torch.Tensor:
    drawn = torch.empty(shape, dtype=torch.float32, device=generator.device)
    return drawn.uniform_(low, high, generator=generator)


def _sign(generator: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    return 1 - 2 * torch.randint(2, shape, generator=generator, device=generator.device).float()


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, int, int, torch.dtype], Drawn]] = {
    "readable": _readable,
    "spread": _spread,
    "ties": _ties,
    "near_ties": _near_ties,
    "scale_ties": _scale_ties,
    "extremes": _extremes,
    "vast": _vast,
    "subnormal": _subnormal,
    "mixed": _mixed,
}
