"""Puts a node together from its configuration: its GPU, its judge, its care. Worker and `ladder node accept` use it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

from autograder.contract import Lane, Work
from autograder.profiling import able
from worker.baseline import Hygiene, below_this_process, in_groups_of, take
from worker.gpulock import GpuLock
from worker.health import Health
from worker.judge import JudgeProcess
from worker.known import KnownJobs
from worker.lanes import Serves, lanes_of
from worker.life import Device, NodeLife
from worker.nvml import Gpu, open_gpu
from worker.settings import NodeConfig
from worker.stopping import Stopping


@dataclass(frozen=True)
class Node:
    """One node's parts; nothing of them runs yet."""

    serves: Serves
    gpu: Gpu | None
    device: Device
    judge: JudgeProcess
    jobs: KnownJobs
    life: NodeLife


def compose(config: NodeConfig, stopping: Stopping) -> Node:
    """Find the GPU, take its baseline, and make what works on it.

    Raises:
        UnfitError, GpuUnknownError: the node cannot serve as it is configured.
        GpuError: its GPU belongs to no lane.
    """
    gpu = None if config.foreign or config.lanes == (Lane.cpu,) else open_gpu(config.gpu)
    lanes = lanes_of(config, gpu)
    device = _device(config, gpu, lanes)
    judge = JudgeProcess(
        judge_command(config, lanes),
        config.work / "judge.log",
        adopt=True,
        stopping=stopping,
        environment=environment(config, gpu),
        sweep=partial(_sweep, config),
    )
    jobs = KnownJobs(judge, config.work / "known", lanes[0])
    health = Health(config.work / "health.json", config.life.cool_down_s, time.time)
    life = NodeLife(
        config.life,
        jobs,
        device,
        health,
        work=config.work,
        stopping=stopping,
        secrets_of_node=config.secrets,
        accepted=config.sandbox.accepted,
    )
    why_not = {Work.profile: no_profiles(config, lanes), Work.sanitize: no_sanitizer(config, lanes)}
    works = tuple(work for work in config.works if not why_not.get(work))
    said = {"profiles": why_not[Work.profile] or "yes", "sanitizer": why_not[Work.sanitize] or "yes"}
    known = facts(config, gpu) | (said if lanes != (Lane.cpu,) else {})
    return Node(Serves(lanes, works, known), gpu, device, judge, jobs, life)


def no_profiles(config: NodeConfig, lanes: tuple[Lane, ...]) -> str:
    """Why this node makes no profiles, in a sentence for students; `""` where it does."""
    if lanes == (Lane.cpu,):
        return "There is no GPU on this node."
    if config.foreign:
        return ""
    return able.why_not(able.find_tool())


def no_sanitizer(config: NodeConfig, lanes: tuple[Lane, ...]) -> str:
    """Why this node sanitizes nothing, in a sentence for students; `""` where it does."""
    if lanes == (Lane.cpu,):
        return "There is no GPU on this node."
    return "" if config.foreign else able.why_no_sanitizer(able.find_sanitizer())


def judge_command(config: NodeConfig, lanes: tuple[Lane, ...]) -> tuple[str, ...]:
    """The judge's command, with the lane that it is to be ready for; one that is not ours is left as it is."""
    return config.judge if config.foreign else (*config.judge, "--lane", lanes[0])


def environment(config: NodeConfig, gpu: Gpu | None) -> dict[str, str]:
    """What the judge's process is told beside what it keeps: its one GPU, and its sandbox's settings."""
    uuid = gpu.uuid if gpu is not None else config.gpu
    return {**config.sandbox.settings, **({"CUDA_VISIBLE_DEVICES": uuid} if uuid else {})}


def facts(config: NodeConfig, gpu: Gpu | None) -> dict[str, str]:
    """Device and sandbox, for the node's page."""
    found = {"sandbox": config.sandbox.driver}
    if image := config.sandbox.settings.get("LADDER_SANDBOX_IMAGE"):
        found["runner image"] = image
    if gpu is not None:
        found |= {"gpu": gpu.name, "gpu uuid": gpu.uuid, "gpu driver": gpu.driver}
    return found


def _device(config: NodeConfig, gpu: Gpu | None, lanes: tuple[Lane, ...]) -> Device:
    on_gpu = not config.foreign and any(lane is not Lane.cpu for lane in lanes)
    # Without NVML its id is what it was told, or that there is only one.
    uuid = gpu.uuid if gpu is not None else (config.gpu or "only") if on_gpu else ""
    ours = in_groups_of(_containers) if config.sandbox.driver == "docker" else below_this_process
    hygiene = Hygiene(gpu, take(gpu), ours) if gpu is not None else None
    return Device(GpuLock(config.locks, uuid), gpu, hygiene)


def _containers() -> frozenset[str]:
    # The SDK is imported where Docker is used.
    from worker import containers  # noqa: PLC0415

    return containers.ours()


def _sweep(config: NodeConfig) -> None:
    """Remove a judge's leftovers that are no processes below it."""
    if config.sandbox.driver == "docker":
        from worker import containers  # noqa: PLC0415  (as above)

        containers.sweep_left_over(config.sandbox.settings)
