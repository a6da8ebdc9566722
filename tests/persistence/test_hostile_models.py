"""Model files with a valid checksum and invalid contents are refused, or give a model with finite predictions."""

import copy
import json

import numpy as np
import pytest

import ridgemark
from ridgemark import NystromRidge, open_rows
from ridgemark.cli.fit import fit_and_measure
from ridgemark.errors import ModelFileError, RidgemarkError
from tests.persistence.cases import KERNEL_MATRIX, MODELS, NEW, X, Y, exact, fit, forge, parse, ridge


def _from_the_command_line():
    model = ridge()
    fit_and_measure(model, open_rows(X, target=Y[:, 0]))
    return model


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
        model = make()
        new = KERNEL_MATRIX[:9] if model.kernel_.pairwise else NEW
        found.append((*parse(model.save(folder / "m").read_bytes()), new, model.predict(new)))
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
        for part in ("fitted", "parameters"):
            for name in header[part]:
                if header[part][name] is None or name in {"ridge_path_", "_fit", "leverage_scores_", "calibration_"}:
                    continue
                less = copy.deepcopy(header)
                del less[part][name]
                kept = {key: array for key, array in arrays.items() if key.partition(".")[0] != name}
                (tmp_path / "m").write_bytes(forge(less, kept))
                try:
                    loaded = ridgemark.load(tmp_path / "m")
                except ModelFileError:
                    continue
                assert name in {"tolerance_", "run_", "solver_bound_", "feature_names_in_"}
                assert not hasattr(loaded, name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("calibration_.residuals", np.full((300, 1), np.nan)),
        ("calibration_.residuals", np.zeros((299, 1))),
        ("calibration_.rows", np.zeros((300, 4))),
        ("calibration_.indices", np.full(300, -1)),
        ("calibration_.weights", np.full(300, -1.0)),
        ("_left_out.residuals", np.full((300, 1), np.inf)),
        ("landmarks_", np.full((25, 3), np.nan)),
        ("landmarks_", np.zeros((25, 3), np.int64)),
        ("landmarks_", np.zeros((25, 3, 1))),
        ("landmark_indices_", np.full(25, 300)),
        ("landmark_indices_", np.full(25, -1)),
        ("landmark_indices_", np.zeros(25)),
        ("_landmark_rows", np.full(25, 300)),
        ("dual_coef_", np.zeros((25, 1))),
        ("dual_coef_", np.full(25, np.inf)),
        ("dual_coef_", np.full(25, 1e308)),
        ("dual_coef_", np.zeros(25, np.float32)),
        ("_fit.kept", np.full(25, 25)),
        ("_fit.kept", np.zeros(25, np.int64)),
        ("_fit.triangle", np.zeros((25, 24))),
        ("_fit.scaled_ridge", np.zeros(1)),
        ("ridge_path_.chosen", np.full(1, 41)),
        ("ridge_path_.ridges", np.zeros(41)),
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
        ("fitted.kernel_", {"object": ["_Trap", {}]}),
        ("fitted.kernel_", {"object": ["os.system", {"command": "true"}]}),
        ("fitted.kernel_", {"object": ["CrossKernel", {}]}),
        ("fitted.kernel_", {"object": ["Leverage", {}]}),
        ("fitted.kernel_", {"object": ["Gaussian", {"bandwidth": 0.0}]}),
        ("fitted.kernel_", {"object": ["Gaussian", {"bandwidth": float("nan")}]}),
        ("fitted.kernel_", {"object": ["Gaussian", {"bandwidth": "median"}]}),
        ("fitted.kernel_", {"object": ["Gaussian", {"bandwidth": [1.0, 2.0]}]}),
        ("fitted.kernel_", {"object": ["Gaussian", {}]}),
        ("fitted.kernel_", {"object": ["Gaussian", {"bandwidth": 1.0, "nonsense": 1}]}),
        ("fitted.kernel_", {"object": ["Sum", {"left": 1, "right": 2}]}),
        ("fitted.kernel_", {"object": ["Polynomial", {"degree": 10**400, "offset": 1.0, "bandwidth": 1.0}]}),
        ("fitted.kernel_", {"object": ["Polynomial", {"degree": 900, "offset": 9.0, "bandwidth": 0.1}]}),
        ("fitted.kernel_", {"object": ["Precomputed", {}]}),
        ("fitted.kernel_", {"object": ["Bernoulli", {"order": 2}]}),
        ("fitted.kernel_", {"object": ["Custom", {"function": None, "diagonal_function": None}]}),
        ("fitted.kernel_", {"given": 0}),
        ("fitted.kernel_", {"pickle": "gANjYnVpbHRpbnM="}),
        ("fitted.n_features_in_", 4),
        ("fitted.n_features_in_", True),
        ("fitted._n_targets", 2),
        ("fitted._flat_targets", False),
        ("fitted._constant_columns", {"tuple": [3]}),
        ("fitted.certificate_.inputs", {"dict": {}}),
        ("fitted.ridge_", 0.0),
        ("fitted.intercept_", float("inf")),
        ("parameters.memory_budget", 3),
        ("parameters.memory_budget", 10**5),
        ("parameters.random_state", -1),
        ("parameters.ridge", -1.0),
        ("parameters.solver", "magic"),
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
    header, arrays = next((h, a) for h, a, _, _ in originals if "landmarks_.indices" in a)
    _refused(header, arrays | {"landmarks_.indices": np.full_like(arrays["landmarks_.indices"], 1 << 30)}, tmp_path)


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
