"""Run as a program: a neighbour on PCIe that copies page-locked memory to a GPU and back until it is killed.

To another GPU than the judge's where the machine has one (design §4, invariant 11), otherwise to the only one. Says
`copying` when the first copies are done.
"""

from __future__ import annotations

import torch

BYTES = 2**28


def main() -> None:
    """Copy for ever, in both directions at once."""
    device = torch.device("cuda", torch.cuda.device_count() - 1)
    here = [torch.empty(BYTES, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
    there = [torch.empty(BYTES, dtype=torch.uint8, device=device) for _ in range(2)]
    streams = [torch.cuda.Stream(device) for _ in range(2)]  # type: ignore[no-untyped-call]

    def cross() -> None:
        for (source, target), stream in zip(((here[0], there[0]), (there[1], here[1])), streams, strict=True):
            with torch.cuda.stream(stream):
                target.copy_(source, non_blocking=True)
        for stream in streams:
            stream.synchronize()

    cross()
    print("copying", flush=True)
    while True:
        cross()


if __name__ == "__main__":
    main()
