"""Switches for the judge's own defences, so that a test can show what each one stops.

Everything is on. Nothing outside the tests makes another `Defences` than the default: no flag, no variable, no file. A
*bite test* switches one off and shows that the attack it meets then succeeds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Defences:
    """Which of the judge's defences are on. What the sandbox keeps has its own switches.

    Attributes:
        guard_bands: what lies around every tensor is checked after each call. Off: an overflow passes.
        poison: outputs start as NaN or a non-zero pattern. Off: they start as zeros, and what is not written may pass.
        private_inputs: inputs are sealed against writing, compared after each call with private copies, and the oracle
            works on the copies. Off: it reads the shared memory after the call, whatever stands there by then.
        snapshot: outputs are copied while the runner is frozen. Off: the runner goes on, and shared memory is read
            `late_read_s` later.
        fresh_inputs: a new 64-bit seed from the system for every call. Off: one known seed for all of them.
        fresh_buffers: new memory for every call. Off: a tensor's memory is kept and filled again.
        nonce: a call's number is 64 random bits and compared with `==`. Off: 1, 2, 3 …, and any later number will do.
        deadlines: every wait ends. Off: only `off_deadline_s` ends one.
        second_call: each checked case is called again on the same inputs. Off: nondeterminism passes.
        hidden_cases: a submission meets cases that it has not seen. Off: public cases only.
        reveal_at_t0: a call's memory reaches the runner when the clock starts. Off: `early_reveal_s` before.
        seals: shared memory cannot be resized. Off: a runner can shrink it under the judge.
        packets: what a runner says is capped in size, number and type. Off: what does not parse is ignored.
        memory_blame: device memory that a submission has taken is its `out_of_memory`. Off: the grader fails.
        oracle: a timed output that agrees with no checked one is compared with the oracle. Off: it passes.
        batches: the event clock is bounded by sealed batches. Off: a forged one ranks.
        copies: no more is taken off a batch for copying its outputs than that takes beside the null. Off: who slows
            those copies gains.
        aa_check: the reference is timed again when the submission is gone. Off: who slows it gains.
        post_timing_trace: after the timed calls their runner makes some that are recorded and traced. Off: other work
            may be timed than a check has seen.
        floor: what no device can do is held. Off: it ranks.
        cold: caches are written over and lines that persist are reset before each timed call. Off: what the judge has
            just written is in them for whoever does not flush.
        fresh_runner: hidden cases and timed calls get runners of their own. Off: the one of the public cases goes on.
    """

    guard_bands: bool = True
    poison: bool = True
    private_inputs: bool = True
    snapshot: bool = True
    fresh_inputs: bool = True
    fresh_buffers: bool = True
    nonce: bool = True
    deadlines: bool = True
    second_call: bool = True
    hidden_cases: bool = True
    reveal_at_t0: bool = True
    seals: bool = True
    packets: bool = True
    fresh_runner: bool = True
    memory_blame: bool = True
    oracle: bool = True
    batches: bool = True
    copies: bool = True
    aa_check: bool = True
    post_timing_trace: bool = True
    floor: bool = True
    cold: bool = True
    late_read_s: float = 0.25
    early_reveal_s: float = 0.25
    off_deadline_s: float = 600.0


ALL_ON = Defences()
