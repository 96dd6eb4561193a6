"""Talking to a runner, and the memory that judge and runner share.

`runner_client` loads a source, makes calls and reads the judge's clock around them (`RunnerClient.call`, `.batch`).
`devices` (`host`, `gpu`) makes memory; `buffers` lays out one call and `batch_buffer` a batch in it; `shared_words` has
the words in shared memory by which a call begins and ends; `failure` is how a call can go wrong. All that a runner says
is a claim.
"""
