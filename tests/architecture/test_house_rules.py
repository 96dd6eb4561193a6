"""Each rule is shown a small tree that breaks it, and one that does not; then the checkout itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import house_rules
from scripts.house_rules import Problem, Rule, Tree

REPOSITORY = Path(__file__).resolve().parents[2]

BROKEN: dict[str, tuple[Rule, dict[str, str]]] = {
    "a commit in a service": (
        house_rules.commit_stands_in_one_place,
        {"server/accounts/service.py": "def f(session):\n    session.commit()\n"},
    ),
    "a broad except in a page": (
        house_rules.broad_excepts_stand_at_the_edges,
        {"server/pages/home.py": "try:\n    f()\nexcept Exception:\n    pass\n"},
    ),
    "a bare except": (
        house_rules.broad_excepts_stand_at_the_edges,
        {"client/api.py": "try:\n    f()\nexcept:\n    pass\n"},
    ),
    "a broad except among others": (
        house_rules.broad_excepts_stand_at_the_edges,
        {"client/api.py": "try:\n    f()\nexcept (ValueError, BaseException):\n    pass\n"},
    ),
    "pickle": (house_rules.nothing_foreign_is_executed, {"worker/main.py": "import pickle\n"}),
    "pickle by parts": (house_rules.nothing_foreign_is_executed, {"worker/main.py": "from pickle import loads\n"}),
    "torch.load": (house_rules.nothing_foreign_is_executed, {"autograder/judge/x.py": "torch.load(path)\n"}),
    "a shell": (house_rules.nothing_foreign_is_executed, {"worker/main.py": "subprocess.run(x, shell=True)\n"}),
    "eval": (house_rules.nothing_foreign_is_executed, {"server/app.py": "eval(text)\n"}),
    "exec outside the runner": (house_rules.nothing_foreign_is_executed, {"autograder/judge/x.py": "exec(text)\n"}),
    "a long function": (
        house_rules.functions_are_short,
        {"server/app.py": "def f():\n" + "    g()\n" * house_rules.MAX_FUNCTION_LINES},
    ),
    "numpy in a problem": (
        house_rules.problems_import_torch_only,
        {"assignments/softmax/problem.py": "import numpy as np\nimport torch\n"},
    ),
    "reference imported": (
        house_rules.reference_is_imported_by_nobody,
        {"worker/main.py": "import reference.softmax\n"},
    ),
    "a variable that nobody explains": (
        house_rules.variables_are_documented,
        {"server/config.py": "class Config:\n    secret_thing: str\n", "README.md": "`LADDER_HOME`"},
    ),
    "a variable in a script": (
        house_rules.variables_are_documented,
        {
            "server/config.py": "class Config:\n    home: str\n",
            "README.md": "`LADDER_HOME`",
            "scripts/x.sh": "$LADDER_OTHER\n",
        },
    ),
    "a manifest key that nobody explains": (
        house_rules.manifest_keys_are_documented,
        {"autograder/assignment.py": "class Case:\n    name: str\n    colour: str\n", "docs/authoring.md": "`name`"},
    ),
    "a registry": (house_rules.no_machine_is_named, {"Makefile": f"pip install -i https://{house_rules.HOSTS[0]}\n"}),
    "a path of one machine": (house_rules.no_machine_is_named, {"x.md": f"see {house_rules.MACHINE_PATHS[0]}main\n"}),
    "something undone": (
        house_rules.nothing_is_left_undone,
        {"client/api.py": f"# {house_rules.UNFINISHED[0]}: later\n"},
    ),
    "a migration without a way back": (
        house_rules.migrations_go_both_ways,
        {"server/migrations/versions/0001.py": "def upgrade():\n    op.x()\n\n\ndef downgrade():\n    pass\n"},
    ),
    "an attack outside the table": (
        house_rules.hostile_files_are_in_the_table,
        {"tests/hostile/time_limit_forever.py": "", "tests/hostile/table.toml": "[passed_other]\nwhy = 'x'\n"},
    ),
}

KEPT: dict[str, tuple[Rule, dict[str, str]]] = {
    "the commit in its place": (
        house_rules.commit_stands_in_one_place,
        {"server/db.py": "def f(session):\n    session.commit()\n"},
    ),
    "the two broad excepts": (
        house_rules.broad_excepts_stand_at_the_edges,
        {"autograder/runner/call.py": "try:\n    f()\nexcept BaseException:\n    pass\n"},
    ),
    "a broad except that raises again": (
        house_rules.broad_excepts_stand_at_the_edges,
        {"server/db.py": "try:\n    f()\nexcept BaseException:\n    undo()\n    raise\n"},
    ),
    "exec in the runner": (
        house_rules.nothing_foreign_is_executed,
        {"autograder/runner/load.py": "exec(code, names)\n"},
    ),
    "a list of arguments": (house_rules.nothing_foreign_is_executed, {"worker/main.py": "subprocess.run(['x'])\n"}),
    "a student's file that does anything": (
        house_rules.nothing_foreign_is_executed,
        {"reference/softmax/submissions/time_limit_x.py": "import pickle\n"},
    ),
    "a student's file that does not parse": (
        house_rules.reference_is_imported_by_nobody,
        {"tests/hostile/compile_error_syntax.py": "def f(\n"},
    ),
    "a path below another": (house_rules.no_machine_is_named, {"x.md": f"see $HOME{house_rules.MACHINE_PATHS[0]}\n"}),
    "an attack in the table": (
        house_rules.hostile_files_are_in_the_table,
        {"tests/hostile/time_limit_forever.py": "", "tests/hostile/table.toml": "[time_limit_forever]\nwhy = 'x'\n"},
    ),
}


def _problems(folder: Path, rule: Rule, files: dict[str, str]) -> list[Problem]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return list(rule(Tree(folder)))


@pytest.mark.parametrize("what", BROKEN)
def test_a_rule_finds_what_breaks_it(tmp_path: Path, what: str) -> None:
    assert _problems(tmp_path, *BROKEN[what])


@pytest.mark.parametrize("what", KEPT)
def test_a_rule_lets_pass_what_keeps_it(tmp_path: Path, what: str) -> None:
    assert _problems(tmp_path, *KEPT[what]) == []


def test_every_rule_is_shown_something_that_breaks_it() -> None:
    assert {rule for rule, _ in BROKEN.values()} == set(house_rules.RULES)


def test_this_checkout_keeps_every_rule() -> None:
    tree = Tree(REPOSITORY)
    assert [str(problem) for rule in house_rules.RULES for problem in rule(tree)] == []
