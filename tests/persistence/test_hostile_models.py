"""Model files with a valid checksum and invalid contents are refused, or give a model with finite predictions."""

import copy
import json

import numpy as np
import pytest

import ridgemark
from ridgemark import NystromRidge, open_rows
from ridgemark.cli.fit import fit_and_measure
from ridgemark.errors import ModelFileError, RidgemarkError
from ridgemark.estimators.saving import save_model
from tests.persistence.cases import KERNEL_MATRIX, MODELS, NEW, X, Y, exact, fit, forge, parse, ridge


def _from_the_command_line():
    model = ridge()
    return model, fit_and_measure(model, open_rows(X, target=Y[:, 0]))


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Return, for models of many kinds, header, arrays, new rows and their predictions."""
    folder, kinds = (
        tmp_path_factory.mktemp("models"),
        MODELS
        | {
            "algebra": lambda: fit(
                ridge(kernel=ridgemark.kernels.Polynomial(2) + ridgemark.kernels.Linear() * 2.0), X, Y
            ),
            "single": lambda: fit(ridge(kernel="laplacian"), X.astype(np.float32), Y.astype(np.float32)),
            "command line": _from_the_command_line,
            "exact laplacian": lambda: fit(exact(kernel="laplacian", ridge=1e-2), X, Y[:, 0]),
        },
    )
    found = []
    for make in kinds.values():
        made = make()
        model, run = made if isinstance(made, tuple) else (made, None)
        new = KERNEL_MATRIX[:9] if model.kernel_.pairwise else NEW
        found.append((*parse(save_model(model, folder / "m", True, run=run).read_bytes()), new, model.predict(new)))
    return found


def _default(originals):
    header, arrays, new, _ = originals[0]
    return copy.deepcopy(header), dict(arrays), new


def _refused(header, arrays, tmp_path):
    (tmp_path / "m").write_bytes(forge(header, arrays))
    with pytest.raises(ModelFileError, match="is damaged") as caught:
        ridgemark.load(tmp_path / "m")
    return str(caught.value)


@pytest.mark.parametrize("name", ["predict", "__dict__", "__class__", "save", "_rows", "kernel", "n_landmarks_", ""])
def test_an_unknown_name_is_refused(name, originals, tmp_path):
    for node in (3, "text", {"dict": {}}, {"object": ["Linear", {}]}, {"array": False}, {"given": 0}):
        header, arrays, _ = _default(originals)
        header["fitted"][name] = node
        arrays[name or "x"] = np.ones(3)
        assert "has the unknown fields" in _refused(header, arrays, tmp_path)


def test_every_name_is_required(originals, tmp_path):
    for header, arrays, _, _ in (originals[0], originals[-1]):
        for part in ("fitted", "parameters", "run"):
            for name in header[part] or ():
                less = copy.deepcopy(header)
                del less[part][name]
                place = name if part == "parameters" else f"{part}.{name}"
                kept = {key: array for key, array in arrays.items() if not f"{key}.".startswith(f"{place}.")}
                assert "lacks" in _refused(less, kept, tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fitted.calibration.residuals", np.full((300, 1), np.nan)),
        ("fitted.calibration.residuals", np.zeros((299, 1))),
        ("fitted.calibration.rows", np.zeros((300, 4))),
        ("fitted.calibration.indices", np.full(300, -1)),
        ("fitted.calibration.weights", np.full(300, -1.0)),
        ("fitted.left_out.values.residuals", np.full((300, 1), np.inf)),
        ("fitted.choice.landmarks", np.full((25, 3), np.nan)),
        ("fitted.choice.landmarks", np.zeros((25, 3), np.int64)),
        ("fitted.choice.landmarks", np.zeros((25, 3, 1))),
        ("fitted.choice.indices", np.full(25, 300)),
        ("fitted.choice.indices", np.full(25, -1)),
        ("fitted.choice.indices", np.zeros(25)),
        ("fitted.left_out.landmark_rows", np.full(25, 300)),
        ("fitted.solution.dual_coef", np.zeros((25, 2))),
        ("fitted.solution.dual_coef", np.full((25, 1), np.inf)),
        ("fitted.solution.dual_coef", np.full((25, 1), 1e308)),
        ("fitted.solution.dual_coef", np.zeros((25, 1), np.float32)),
        ("fitted.sums.kept", np.full(25, 25)),
        ("fitted.sums.kept", np.zeros(25, np.int64)),
        ("fitted.sums.triangle", np.zeros((25, 24))),
        ("fitted.sums.scaled_ridge", np.zeros(1)),
        ("fitted.solution.path.chosen", np.full(1, 57)),
        ("fitted.solution.path.ridges", np.zeros(49)),
        ("another", np.zeros(1)),
    ],
)
def test_an_array_that_does_not_fit_is_refused(name, value, originals, tmp_path):
    header, arrays, _ = _default(originals)
    assert name in arrays or name == "another"
    _refused(header, arrays | {name: value}, tmp_path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("estimator", "NystromFeatures"),
        ("estimator", ["NystromRidge"]),
        ("fitted", []),
        ("fitted.choice.kernel", {"object": ["_Trap", {}]}),
        ("fitted.choice.kernel", {"object": ["os.system", {"command": "true"}]}),
        ("fitted.choice.kernel", {"object": ["CrossKernel", {}]}),
        ("fitted.choice.kernel", {"object": ["Leverage", {}]}),
        ("fitted.choice.kernel", {"object": ["Gaussian", {"bandwidth": 0.0}]}),
        ("fitted.choice.kernel", {"object": ["Gaussian", {"bandwidth": float("nan")}]}),
        ("fitted.choice.kernel", {"object": ["Gaussian", {"bandwidth": "median"}]}),
        ("fitted.choice.kernel", {"object": ["Gaussian", {"bandwidth": [1.0, 2.0]}]}),
        ("fitted.choice.kernel", {"object": ["Gaussian", {}]}),
        ("fitted.choice.kernel", {"object": ["Gaussian", {"bandwidth": 1.0, "nonsense": 1}]}),
        ("fitted.choice.kernel", {"object": ["Sum", {"left": 1, "right": 2}]}),
        ("fitted.choice.kernel", {"object": ["Polynomial", {"degree": 10**400, "offset": 1.0, "bandwidth": 1.0}]}),
        ("fitted.choice.kernel", {"object": ["Polynomial", {"degree": 900, "offset": 9.0, "bandwidth": 0.1}]}),
        ("fitted.choice.kernel", {"object": ["Precomputed", {}]}),
        ("fitted.choice.kernel", {"object": ["Bernoulli", {"order": 2}]}),
        ("fitted.choice.kernel", {"object": ["Custom", {"function": None, "diagonal_function": None}]}),
        ("fitted.choice.kernel", {"given": 0}),
        ("fitted.choice.kernel", {"pickle": "gANjYnVpbHRpbnM="}),
        ("fitted.schema.n_features", 4),
        ("fitted.schema.n_features", True),
        ("fitted.schema.targets.count", 2),
        ("fitted.schema.targets.flat", 1),
        ("fitted.rows.constant_columns", {"tuple": [3]}),
        ("fitted.solution.certificate.inputs", {"dict": {}}),
        ("fitted.cost.n_passes", -1),
        ("fitted.cost.n_passes", 10**400),
        ("fitted.sums.moments.total_weight", 10**400),
        ("fitted.solution.solver", "magic"),
        ("parameters.memory_budget", 3),
        ("parameters.memory_budget", 10**5),
        ("parameters.random_state", -1),
        ("parameters.ridge", -1.0),
        ("parameters.solver", "magic"),
        ("parameters.device", "magic"),
        ("parameters.kernel", {"given": -1}),
        ("parameters.progress", "yes"),
        ("given", [3]),
        ("given", None),
    ],
)
def test_an_invalid_value_is_refused(path, value, originals, tmp_path):
    header, arrays, _ = _default(originals)
    *outer, last = path.split(".")
    node = header
    for name in outer:
        node = node[name]
    node[last] = value
    if path == "parameters.memory_budget" and value > 1000:
        (tmp_path / "m").write_bytes(forge(header, arrays))
        assert ridgemark.load(tmp_path / "m").memory_budget == value
    else:
        _refused(header, arrays, tmp_path)


def test_a_sparse_matrix_with_an_index_out_of_range_is_refused(originals, tmp_path):
    name = "fitted.choice.landmarks.indices"
    header, arrays = next((h, a) for h, a, _, _ in originals if name in a)
    _refused(header, arrays | {name: np.full_like(arrays[name], 1 << 30)}, tmp_path)


# Random mutations

_NODES = [None, True, False, -1, 0, 1, 2, 3, 10**30, 10**400, 0.0, -2.5, 1e-300, 1e300, float("nan"), float("inf"), ""]
_NODES += ["predict", "gcv", "gradient", "median", [], [1.0], {}, {"tuple": []}, {"array": False}, {"array": True}]
_NODES += [{"dict": {}}, {"csr": [True, 5, 5]}, {"given": 0}, {"object": ["Linear", {}]}, {"words": ["a", "b", "c"]}]
_NODES += [{"object": ["Gaussian", {"bandwidth": 1e-200}]}, {"object": ["Cosine", {}]}]
_NODES += [{"object": ["Polynomial", {"degree": 60, "offset": 1e5, "bandwidth": 1e-3}]}]


def _places(node):
    """Return all pairs of a container and one of its keys."""
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [place for key, part in entries for place in [(node, key), *_places(part)]]


def _mutate_header(header, rng):
    places = _places(header)
    (node, key), (other, place) = (places[rng.integers(len(places))] for _ in range(2))
    kind = rng.choice(["replace", "replace", "delete", "add", "swap", "scale"])
    if kind == "replace":
        node[key] = copy.deepcopy(_NODES[rng.integers(len(_NODES))])
    elif kind == "delete":
        del node[key]
    elif kind == "add" and isinstance(node, dict):
        node[rng.choice(["predict", "__dict__", "_fit", "x", "run_", "_rows"])] = copy.deepcopy(other[place])
    elif kind == "swap":
        node[key], other[place] = copy.deepcopy(other[place]), copy.deepcopy(node[key])
    elif type(node[key]) is float:
        node[key] *= 10.0 ** int(rng.integers(-300, 300))
    elif type(node[key]) is int:
        node[key] += int(rng.integers(-2, 3))


def _mutate_array(arrays, rng):
    name, other = rng.choice(sorted(arrays), 2)
    array = arrays[name].copy()
    kind = rng.choice(["entry", "entry", "bytes", "cut", "type", "shape", "swap", "delete", "grow", "scale"])
    if kind == "entry" and array.size:
        values = [np.nan, np.inf, -np.inf, 1e308, -1e308, 0, -1] if array.dtype.kind == "f" else [-1, 2**30, 0, 7]
        with np.errstate(all="ignore"):
            array.reshape(-1)[rng.integers(array.size)] = rng.choice(values)
    elif kind == "bytes" and array.size:
        raw = array.reshape(-1).view(np.uint8)
        start = int(rng.integers(len(raw)))
        part = raw[start : start + int(rng.integers(1, 64))]
        part[:] = np.frombuffer(rng.bytes(len(part)), np.uint8)
    elif kind == "cut" and array.ndim:
        array = array[: int(rng.integers(len(array) + 1))]
    elif kind == "type":
        with np.errstate(all="ignore"):
            array = array.astype(rng.choice(["f4", "f8", "i8", "i4", "b1"]))
    elif kind == "shape":
        array = [array.reshape(-1), array.T, array[None], array[..., None]][rng.integers(4)]
    elif kind == "swap":
        array, arrays[other] = arrays[other], array
    elif kind == "grow" and array.ndim:
        array = np.concatenate([array, array])
    elif kind == "scale" and array.dtype == np.float64:
        with np.errstate(all="ignore"):
            array = array * 10.0 ** int(rng.integers(-300, 300))
    arrays[name] = array
    if kind == "delete":
        del arrays[name]


def _mutate_text(text, rng):
    changed = bytearray(text.encode())
    for _ in range(int(rng.integers(1, 4))):
        changed[rng.integers(len(changed))] = rng.choice(list(b'0123456789-{}[]",:aCFO<'))
    return changed.decode()


def _mutated(header, arrays, rng):
    header, arrays = copy.deepcopy(header), dict(arrays)
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.5 and arrays:
            _mutate_array(arrays, rng)
        else:
            _mutate_header(header, rng)
    text = json.dumps(header)
    return forge(_mutate_text(text, rng) if rng.random() < 0.2 else text, arrays)


def _questions(model, new):
    """Call all other methods; an error of the package is allowed too."""
    asked = [lambda: repr(model), lambda: model.ridge_path_.on_edge]
    if isinstance(model, NystromRidge):
        asked += [
            lambda: model.predict(new, return_std=True),
            lambda: model.predict_interval(new, 0.5),
            lambda: str(model.diagnose()),
            lambda: (str(model.certificate_), model.certificate_.to_html(), model.certificate_.vacuous),
        ]
    for ask in asked:
        try:
            ask()
        except RidgemarkError:
            pass
        except AttributeError as error:
            assert "has no attribute" in str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", [300, pytest.param(3000, marks=pytest.mark.slow)])
def test_a_mutated_file_is_refused_or_predicts_finite_numbers(count, originals, tmp_path):
    rng, path, loaded = np.random.default_rng(count), tmp_path / "m", 0
    for number in range(count):
        header, arrays, new, predictions = originals[number % len(originals)]
        path.write_bytes(_mutated(header, arrays, rng))
        try:
            model = ridgemark.load(path)
        except ModelFileError:
            continue
        except RidgemarkError as error:  # a file may claim to need the user's own kernel
            assert "load it with kernel=" in str(error)
            continue
        loaded += 1
        found = model.predict(new)
        assert found.shape == predictions.shape
        assert np.isfinite(found).all()
        _questions(model, new)
    assert 0.02 * count < loaded < 0.6 * count  # some mutations change nothing essential
