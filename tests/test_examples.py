"""The scripts in examples/: what they print, against quadrature, closed forms, other packages or the truth.

The references are written without mgvbp; from the scripts they take the data only.
"""

import re
import runpy
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

EXAMPLES = Path(__file__).parents[1] / "examples"
NUMBER = r"(-?\d+\.\d+)"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def play(monkeypatch, capsys, tmp_path):
    """Run a script here, where warnings are errors: its variables and output. It writes what it is told."""
    monkeypatch.chdir(tmp_path)

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        variables = runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(arguments)
        assert all((tmp_path / name).read_bytes().startswith(PNG) for name in arguments)
        return variables, capsys.readouterr().out

    return run


def found(pattern, text):
    """The numbers in the one place that the pattern fits."""
    (match,) = re.findall(pattern.replace("#", NUMBER), text)
    return np.array(match, dtype=float)


def row(name, text):
    """Mean and standard deviation of a parameter, from a summary: a table with four columns."""
    return found(rf"(?m)^{re.escape(name)} +# +# +\S+ +\S+ *$", text)


def weighted(log_weights, *values):
    """Mean and standard deviation of each, by the sum over a grid."""
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    means = [(weights * value).sum() for value in values]
    return [
        (mean, np.sqrt((weights * (value - mean) ** 2).sum()))
        for mean, value in zip(means, values, strict=True)
    ]


def near(printed, exact, shift=0.1, ratio=0.1):
    """Whether a mean is off by at most ``shift`` deviations, and they by a factor of 1 ± ``ratio``."""
    (mean, std), (true_mean, true_std) = printed, exact
    return abs(mean - true_mean) < shift * true_std and abs(std / true_std - 1.0) < ratio


def test_quickstart_is_the_posterior_by_quadrature(play):
    variables, text = play("quickstart.py", "picture.png")
    x, damaged = variables["x"], variables["damaged"]
    a, b = np.meshgrid(np.linspace(-5.0, 3.0, 321), np.linspace(-8.0, 3.0, 331), indexing="ij")
    p = 1.0 / (1.0 + np.exp(-(a[..., None] + b[..., None] * x)))
    log_posterior = scipy.stats.bernoulli.logpmf(damaged, p).sum(axis=-1) - (a**2 + b**2) / 8.0
    level, slope = weighted(log_posterior, a, b)
    assert near(row("theta[0]", text), level)
    assert near(row("theta[1]", text), slope)

    order = np.argsort((logit := a - 3.9 * b).ravel())
    share = np.exp(log_posterior - log_posterior.max()).ravel()[order].cumsum()
    exact = 1.0 / (1.0 + np.exp(-np.interp([0.5, 0.05], share / share[-1], logit.ravel()[order])))
    assert found(r"31 °F: # \(90% interval #", text) == pytest.approx(exact, abs=0.03)  # of 4,000 draws


def test_without_an_argument_nothing_is_saved(play):
    play("quickstart.py")


def test_constrained_is_the_posterior_by_quadrature(play):
    variables, text = play("constrained.py", "picture.png")
    a, b = np.meshgrid(np.linspace(0.001, 0.4, 400), np.linspace(0.001, 0.15, 300), indexing="ij")
    o = 1.0 - a - b
    groups = np.stack([a * (a + 2.0 * o), b * (b + 2.0 * o), 2.0 * a * b, o**2], axis=-1)
    log_posterior = scipy.stats.multinomial.logpmf(variables["patients"], variables["patients"].sum(), groups)
    for name, exact in zip("ABO", weighted(log_posterior, a, b, o), strict=True):
        assert near(found(f"allele {name}: # ± #", text), exact)
    # data and grid give the known maximum: Lange (2010), Numerical Analysis for Statisticians
    best = np.unravel_index(log_posterior.argmax(), a.shape)
    assert [a[best], b[best], o[best]] == pytest.approx([0.2136, 0.0501, 0.7363], abs=0.001)
    assert "verdict: trust" in text


def test_robust_regression_is_the_posterior_by_quadrature(play):
    variables, text = play("robust_regression.py", "picture.png")
    tide, year = variables["tide"], variables["year"]
    level, rise, log_scale = np.meshgrid(
        np.linspace(42.0, 61.0, 96), np.linspace(1.4, 3.1, 96), np.linspace(2.3, 3.5, 41), indexing="ij"
    )
    scale = np.exp(log_scale)
    size = sum(np.abs(y_t - level - rise * x_t) for x_t, y_t in zip(year, tide, strict=True))
    log_posterior = -size / scale - len(tide) * np.log(2.0 * scale) + log_scale  # the Jacobian: of log scale
    log_posterior += scipy.stats.norm.logpdf(level, 0.0, 100.0) + scipy.stats.norm.logpdf(rise, 0.0, 10.0)
    log_posterior += scipy.stats.halfnorm.logpdf(scale, scale=50.0)
    for name, exact in zip(
        ("level", "rise", "scale"), weighted(log_posterior, level, rise, scale), strict=True
    ):
        assert near(row(name, text), exact)
    mean, std = found(r"median line:\s+# ± #", text)
    assert abs(mean - 2.0) < 3.0 * std  # the truth
    squares = found(r"least squares:\s+#", text)
    assert squares == pytest.approx(scipy.stats.linregress(year, tide).slope, abs=0.006)
    assert squares > 2.0 + 3.0 * std


def test_compare_families_has_the_exact_differences(play):
    variables, text = play("compare_families.py", "picture.png")
    X = np.column_stack([np.ones(13), variables["X"]])
    precision = X.T @ X / 2.5**2 + np.diag(1.0 / np.array([400.0, 4.0, 4.0, 4.0, 4.0]))
    # the best diagonal Gaussian has the precision's diagonal: KL = ½ (Σ log P_ii − log det P)
    loss = 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])
    bound, _, below, error = found(r"diagonal\s+#\s+#\s+#\s+#", text)
    assert abs(below - loss) < 3.0 * error + 0.01
    for name in ("block", "full"):
        assert found(rf"{name}\s+#\s+#\s+#", text)[2] < 0.01
        assert found(rf"{name}: .* \[# # # #\]", text) == pytest.approx(
            np.sqrt(np.diag(np.linalg.inv(precision)))[1:], abs=0.01
        )
    assert found(r"diagonal: .* \[# # # #\]", text) == pytest.approx(np.diag(precision)[1:] ** -0.5, abs=0.01)
    assert bound < found(r"full\s+#", text)


def test_sequential_is_the_closed_form_after_every_day(play):
    variables, text = play("sequential.py")
    for day in range(1, 6):
        x, y = variables["x"][:day].ravel(), variables["y"][:day].ravel()
        X = np.column_stack([np.ones_like(x), x])
        covariance = np.linalg.inv(X.T @ X / 0.25 + np.eye(2) / 4.0)
        mean, std = covariance @ X.T @ y / 0.25, np.sqrt(np.diag(covariance))
        printed = found(rf"day {day}: offset # ± #, gain # ± #", text)
        assert printed == pytest.approx([mean[0], std[0], mean[1], std[1]], abs=2e-4)
    assert found("at once: offset # ± #, gain # ± #", text) == pytest.approx(printed, abs=2e-4)
    assert (np.abs(mean - [0.3, 1.1]) < 3.0 * std).all()


def test_ask_tell_is_the_closed_form_and_equals_fit(play):
    variables, text = play("ask_tell.py")
    deaths = variables["deaths"]
    assert deaths.sum() == 196  # as everybody has it who quotes von Bortkiewicz
    # of aθ − b exp(θ) the best Gaussian has a = b exp(μ + σ²/2) = 1/σ²
    std = deaths**-0.5
    mean = np.log(deaths / 20.0) - 0.5 / deaths
    printed = np.array(re.findall(rf"log rate {NUMBER} ± {NUMBER}", text), dtype=float)
    # 0.01 nats below the optimum in all: (Δμ/σ)²/2 + (Δσ/σ)² summed over the corps
    distance = 0.5 * ((printed[:, 0] - mean) / std) ** 2 + (printed[:, 1] / std - 1.0) ** 2
    assert distance.sum() < 0.01
    assert "largest difference to mgvbp.fit: 0.0\n" in text


def test_garch_risk_agrees_with_arch(play):
    arch = pytest.importorskip("arch", reason="needs mgvbp[volatility]")
    variables, text = play("garch_risk.py", "picture.png")
    fitted = arch.arch_model(variables["returns"], dist="t", rescale=False).fit(disp="off")
    for name, value in fitted.params.items():
        ml = found(rf"(?m)^{re.escape(name)}\s+#\s+#\s+#\s+#\s+#\s", text)[4]
        assert ml == pytest.approx(value, rel=0.01)
    nu = fitted.params["nu"]
    shock = scipy.stats.t.ppf(0.01, nu) * np.sqrt((nu - 2.0) / nu)
    sigma = np.sqrt(fitted.forecast(horizon=1).variance.iloc[-1, 0])
    # theirs is that of the estimate, ours averages over the parameters
    (var,) = np.atleast_1d(found(r"value at risk, 1%, next day: #%", text))
    assert var == pytest.approx(-fitted.params["mu"] - sigma * shock, rel=0.05)
    assert var < found(r"shortfall, 1%, next day: #%", text) < found(r"value at risk, 1%, ten days: #%", text)
    low, high = found(r"interval # to #", text)
    assert low < fitted.conditional_volatility.iloc[-1] < high


def test_network_comes_near_the_true_probabilities(play):
    pytest.importorskip("jax", reason="needs mgvbp[jax]")
    _, text = play("network.py")
    accuracy, best = found("accuracy #, with the true probabilities #", text)
    assert accuracy > best - 0.02  # both on the same 1,000 points
    score, entropy = found("log score #, with the true probabilities #", text)
    assert entropy - 0.02 < score < entropy + 0.01
    assert found("off by # on average", text) < 0.05


def command(name, *arguments):
    return [sys.executable, str(EXAMPLES / name), *map(str, arguments)]


def output_of(name, *arguments):
    """What a script prints in a process of its own, if it has nothing to warn of."""
    run = subprocess.run(command(name, *arguments), capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def test_simulator_survives_a_kill_and_finds_the_curve(play, tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "yeast.npz"
    first = subprocess.Popen(command("simulator.py", path), stdout=subprocess.DEVNULL)
    while not path.exists() and first.poll() is None:
        time.sleep(0.01)
    first.kill()
    assert first.wait() != 0, "it had finished before it was killed"
    resumed = output_of("simulator.py", path)
    variables, whole = play("simulator.py")
    assert resumed == f"going on with yeast.npz\n{whole}"

    yeast = variables["yeast"]

    def logistic(t, start, rate, capacity):
        return capacity / (1.0 + (capacity / start - 1.0) * np.exp(-rate * t))

    hours = np.arange(19.0)
    estimate, covariance = scipy.optimize.curve_fit(logistic, hours, yeast, p0=(10.0, 0.5, 500.0))
    for name, value, error in zip(
        ("start", "rate", "capacity"), estimate, np.sqrt(np.diag(covariance)), strict=True
    ):
        assert near(row(name, whole), (value, error), shift=0.05)
    noise = np.sqrt(((yeast - logistic(hours, *estimate)) ** 2).sum() / 16.0)
    assert row("noise", whole)[0] == pytest.approx(noise, rel=0.1)
    assert "draws that failed: {}" in whole


@pytest.mark.parametrize(("script", "package"), [("network.py", "jax"), ("garch_risk.py", "arch")])
def test_a_missing_extra_is_said_in_one_sentence(script, package):
    without = f"import sys, runpy; sys.modules[{package!r}] = None; "
    start = f"runpy.run_path({str(EXAMPLES / script)!r}, run_name='__main__')"
    run = subprocess.run([sys.executable, "-c", without + start], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert re.fullmatch(rf"this needs the package {package}: pip install 'mgvbp\[\w+\]'\n", run.stderr)


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_script_says_how_to_run_it_and_is_tested(script):
    text = script.read_text(encoding="utf-8")
    assert re.search(rf"^Run:  .*python examples/{script.name}", text, re.MULTILINE)
    here = Path(__file__).read_text(encoding="utf-8")
    assert f'"{script.name}"' in here or script.stem.endswith("_function")  # those are in test_foreign.py
    page = EXAMPLES.parent / "docs" / "examples.md"
    assert f"(../examples/{script.name})" in page.read_text(encoding="utf-8")


def test_typed(play):
    """The level of the readings, by quadrature over level and log scale."""
    variables, out = play("typed.py")
    y = 1.0 + 0.2 * np.random.default_rng(0).standard_t(4.0, size=40)
    level, log_scale = np.meshgrid(np.linspace(0.7, 1.3, 301), np.linspace(-3.0, -0.5, 251))
    z = (y - level[..., None]) / np.exp(log_scale[..., None])
    log_density = (
        -2.5 * np.log1p(z**2 / 4.0).sum(axis=-1) - len(y) * log_scale - (level**2 + log_scale**2) / 8.0
    )
    weights = np.exp(log_density - log_density.max())
    exact = (weights * level).sum() / weights.sum()
    ((mean, low, high),) = re.findall(f"level {NUMBER}, 95% between {NUMBER} and {NUMBER}", out)
    assert float(mean) == pytest.approx(exact, abs=0.011)
    assert float(low) < exact < float(high)
    assert variables["posterior"](variables["Readings"](y)).converged
