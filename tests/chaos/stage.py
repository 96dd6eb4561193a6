"""The whole installation of a run: services, proxies, processes, and two courses in the database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from broker.identity import NodeKey
from server import migrations
from server.config import Config, load_config
from server.db import Database
from tests.chaos import course, programs
from tests.chaos.clocks import Clocks, set_clock
from tests.chaos.plan import Scale, Step
from tests.chaos.programs import REAL_NODE, Environ
from tests.chaos.proxy import Proxy, Route
from tests.chaos.services import Postgres, Redis, free_port
from tests.chaos.supervisor import Program, Supervisor
from tests.doubles.machines import make_node


@dataclass(frozen=True)
class Routes:
    """Who reaches whom through which proxy."""

    web: Route
    database_of_web: Route
    database_of_services: Route
    broker_of_services: Route
    broker_of_nodes: Route

    def all(self) -> list[Route]:
        """Every route."""
        return list(vars(self).values())


@dataclass(frozen=True)
class Stage:
    """What a run works on.

    Attributes:
        guard: the process that adopts orphans.
        database, config: ours, not through a proxy.
        tokens: of the students, by number.
        missing: kinds of fault that this machine cannot have, and why.
    """

    folder: Path
    guard: int
    postgres: Postgres
    redis: Redis
    proxy: Proxy
    routes: Routes
    supervisor: Supervisor
    database: Database
    config: Config
    tokens: Mapping[int, str]
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where students and nodes reach the web tier: whichever of its processes answers."""
        return f"http://127.0.0.1:{self.routes.web.port}"

    def heal(self) -> None:
        """End every fault that may still last."""
        self.proxy.heal()
        for program in self.supervisor.programs:
            if program.clock is not None:
                set_clock(program.clock, 0)
            if program.small_disk:
                program.filling.unlink(missing_ok=True)
        self.supervisor.resume()

    def set_due(self, due_at: datetime) -> None:
        """Let `plan.DUE` be due then."""
        with self.database.transaction() as session:
            course.set_due(session, due_at)


@contextmanager
def staged(folder: Path, guard: int, scale: Scale, steps: Sequence[Step]) -> Iterator[Stage]:
    """Start everything; afterwards it has ended.

    Raises:
        NotHereError: this machine has no PostgreSQL or no Redis to start.
    """
    with ExitStack() as stack:
        (folder / "logs").mkdir(parents=True)
        folder.chmod(0o711)
        postgres, redis, proxy = Postgres(folder / "postgres"), Redis(folder / "redis"), Proxy()
        stack.callback(proxy.close)
        postgres.make()
        stack.callback(postgres.stop, "immediate")
        redis.start()
        stack.callback(redis.stop)
        environ = programs.environment(folder, postgres.url(), redis.url(), steps)
        config = load_config(environ)
        database = Database(config.database_url)
        stack.callback(database.dispose)
        tokens, keys = _seed(database, config, scale)
        ports = (free_port(), free_port())
        routes = _routes(proxy, ports, postgres, redis)
        stage = Stage(folder, guard, postgres, redis, proxy, routes, Supervisor(), database, config, tokens)
        stack.callback(stage.supervisor.stop)
        stage.supervisor.start(_programs(stage, ports, keys, environ))
        yield stage


def _seed(database: Database, config: Config, scale: Scale) -> tuple[dict[int, str], dict[str, NodeKey]]:
    """Fill the database: the students' tokens by number, the nodes' keys by name."""
    migrations.upgrade(config.database_url)
    course.write_assignments(config)
    with database.transaction() as session:
        course.make_courses(session, config)
        tokens = {number: course.enrol(session, number) for number in range(scale.students)}
        names = [f"double{number}" for number in range(scale.nodes)] + ([REAL_NODE] if scale.real else [])
        keys = {name: make_node(session, name=name, now=datetime.now(UTC))[1] for name in names}
    return tokens, keys


def _routes(proxy: Proxy, web_ports: Sequence[int], postgres: Postgres, redis: Redis) -> Routes:
    return Routes(
        web=proxy.add("web", web_ports),
        database_of_web=proxy.add("database of web", [postgres.port]),
        database_of_services=proxy.add("database of services", [postgres.port]),
        broker_of_services=proxy.add("broker of services", [redis.port]),
        broker_of_nodes=proxy.add("broker of nodes", [redis.port]),
    )


def _programs(stage: Stage, web_ports: Sequence[int], keys: Mapping[str, NodeKey], environ: Environ) -> list[Program]:
    routes, postgres, redis = stage.routes, stage.postgres, stage.redis
    web = {**environ, "LADDER_DATABASE_URL": postgres.url(port=routes.database_of_web.port)}
    services = {
        **environ,
        "LADDER_DATABASE_URL": postgres.url(port=routes.database_of_services.port),
        "LADDER_BROKER_URL": redis.url(routes.broker_of_services.port),
    }
    nodes_environ = {
        **environ,
        "LADDER_BROKER_URL": redis.url(routes.broker_of_nodes.port),
        "LADDER_SERVER_URL": stage.url,
    }
    clocks = Clocks(stage.folder)
    made = [
        programs.service(stage.folder, f"web{index}", "web", web, "--port", str(port), clocks=clocks)
        for index, port in enumerate(web_ports)
    ]
    for role in ("recorder", "dispatcher"):
        made += [programs.service(stage.folder, f"{role}{index}", role, services, clocks=clocks) for index in range(2)]
    workers = [programs.worker(stage.folder, name, key, nodes_environ, clocks=clocks) for name, key in keys.items()]
    if why_not := programs.give_small_disk(workers[0]):
        stage.missing["disk.full"] = why_not
    if clocks.why_not:
        stage.missing.update(dict.fromkeys(("clock.forward", "clock.back"), clocks.why_not))
    return made + workers
