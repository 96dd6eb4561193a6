"""Each rule is shown a small tree that breaks it, and one that does not. `make check` asks them of the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import house_rules
from scripts.house_rules import Problem, Rule, Tree

BROKEN: dict[str, tuple[Rule, dict[str, str]]] = {
    "a commit in a service": (
        house_rules.commit_stands_in_one_place,
        {"server/accounts/accounts.py": "def f(session):\n    session.commit()\n"},
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
        {"server/config.py": "class Config:\n    secret_thing: str\n", "docs/configuration.md": "`LADDER_HOME`"},
    ),
    "a variable in a script": (
        house_rules.variables_are_documented,
        {
            "server/config.py": "class Config:\n    home: str\n",
            "docs/configuration.md": "`LADDER_HOME`",
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
    "a language in a page": (
        house_rules.languages_are_named_by_their_records,
        {"server/pages/x.py": "if language == 'triton':\n    f()\n"},
    ),
    "a member of the enum": (
        house_rules.languages_are_named_by_their_records,
        {"worker/x.py": "from autograder.contract import Language\n\nuses = Language.cuda\n"},
    ),
    "a language in a part of a name": (
        house_rules.languages_are_named_by_their_records,
        {"client/x.py": "def show_cuda_file() -> None:\n    pass\n"},
    ),
    "a language in the editor": (
        house_rules.languages_are_named_by_their_records,
        {"web/src/editor/view.js": "const MODES = {\n  cuda: cpp,\n};\n"},
    ),
    "a language in a template": (
        house_rules.languages_are_named_by_their_records,
        {"web/templates/x.html": "{% if language == 'triton' %}one{% endif %}\n"},
    ),
    "another language than a file may name": (
        house_rules.languages_are_named_by_their_records,
        {"worker/node.py": "seen = 'CUDA_VISIBLE_DEVICES'\nwhich = 'triton'\n"},
    ),
    "a file that may name a language and does not": (
        house_rules.languages_are_named_by_their_records,
        {"worker/node.py": "seen = 1\n"},
    ),
    "an attack outside the table": (
        house_rules.hostile_files_are_in_the_table,
        {"tests/hostile/time_limit_forever.py": "", "tests/hostile/table.toml": "[passed_other]\nwhy = 'x'\n"},
    ),
    "a fourth module of one name": (
        house_rules.module_names_are_told_apart,
        {f"server/{folder}/service.py": "" for folder in ("a", "b", "c", "d")},
    ),
    "a word that was given up, in a page": (
        house_rules.given_up_words_stay_given_up,
        {"docs/operations.md": "The Accounting of a course\n"},
    ),
    "a page that names a file which was renamed": (
        house_rules.files_named_in_docs_exist,
        {"docs/x.md": "It stands in `server/old.py`.\n", "server/new.py": ""},
    ),
    "a page that names a folder which is a module now": (
        house_rules.files_named_in_docs_exist,
        {"docs/x.md": "See `server/drafts/`.\n", "server/drafts.py": ""},
    ),
    "a module named by a word that was given up": (
        house_rules.given_up_words_stay_given_up,
        {"server/accounting.py": ""},
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
    "a language in prose": (
        house_rules.languages_are_named_by_their_records,
        {"server/pages/x.py": '"""Shows Triton."""\n\nx = 1  # Also CUDA.\n', "web/src/x.js": "// for triton\n"},
    ),
    "a language in its record": (
        house_rules.languages_are_named_by_their_records,
        {"autograder/languages/triton/__init__.py": "ID = 'triton'\n"},
    ),
    "a word that a file may name": (
        house_rules.languages_are_named_by_their_records,
        {"worker/node.py": "seen = 'CUDA_VISIBLE_DEVICES'\n"},
    ),
    "an attack in the table": (
        house_rules.hostile_files_are_in_the_table,
        {"tests/hostile/time_limit_forever.py": "", "tests/hostile/table.toml": "[time_limit_forever]\nwhy = 'x'\n"},
    ),
    "many packages, and a name three times": (
        house_rules.module_names_are_told_apart,
        {f"server/{folder}/{name}.py": "" for folder in "abcd" for name in ("__init__", f"one_{folder}")}
        | {f"worker/{folder}/limits.py": "" for folder in "abc"},
    ),
    "a page that names what is there, or is made later": (
        house_rules.files_named_in_docs_exist,
        {"docs/x.md": "`server/new.py`, `server/`, `deploy/site/server.env`, `server/ne`\n", "server/new.py": ""},
    ),
    "a longer word": (house_rules.given_up_words_stay_given_up, {"docs/x.md": "timekeeper, `leaderboard_bests`\n"}),
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
