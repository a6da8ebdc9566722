"""Model files with a valid checksum and invalid contents are refused, or give a model with finite predictions."""

import copy
import json
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest

import ridgemark
from ridgemark import ExactKernelRidge, NystromClassifier, NystromRidge, open_rows
from ridgemark.cli.measures import fit_and_measure
from ridgemark.errors import ModelFileError, RidgemarkError
from ridgemark.estimators.saving import load_model, save_model
from ridgemark.persistence import OBJECTS, SCHEMA
from ridgemark.persistence.checking import saved_hints
from tests.helpers import slowly
from tests.persistence.cases import KERNEL_MATRIX, MODELS, NEW, X, Y, exact, fit, forge, parse, place_of, ridge


def _from_the_command_line():
    model = ridge()
    return model, fit_and_measure(model, open_rows(X, target=Y[:, 0]))


def ridge_of_rows():
    return fit(ridge(ridge=1e-3), X, Y)


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
    for make, compact in [*((make, None) for make in kinds.values()), (ridge_of_rows, "predict")]:
        made = make()
        model, run = made if isinstance(made, tuple) else (made, None)
        new = KERNEL_MATRIX[:9] if model.kernel_.pairwise else NEW
        found.append(
            (
                *parse(save_model(model, folder / "m", True, sums=compact or True, run=run).read_bytes()),
                new,
                model.predict(new),
            )
        )
    return found


_COLUMNS = {
    "number": np.where(np.arange(300) % 7 == 0, np.nan, X[:, 0]),
    "text": np.array(["one", "two", "three"])[np.arange(300) % 3],
    "tail": np.array([f"N{k}" for k in np.arange(300) ** 2 % 139]),
    "date": np.datetime64("2019-11-03", "s") + (10**7 * np.abs(X[:, 1])).astype("timedelta64[s]"),
}
_LABELS = np.array(["a", "b", "c"])[np.digitize(Y[:, 1], [-0.5, 0.5])]


@pytest.fixture(scope="module")
def of_tables_and_classes(tmp_path_factory):
    """Return, for models of tables and of classes, header, arrays, rows and their targets."""
    whole = pytest.importorskip("pandas").DataFrame(_COLUMNS)
    table = whole[:40]
    classes = {"kernel": "gaussian", "bandwidth": 1.0, "n_landmarks": 25, "random_state": 0}
    made = [
        (fit(ridge(kernel="gaussian", ridge=1e-2), whole, Y[:, 0]), table, Y[:40, 0]),
        (fit(exact(kernel="gaussian", ridge=1e-2), whole, Y[:, 0]), table, Y[:40, 0]),
        (fit(NystromClassifier(**classes), whole, Y[:, 0] > 1), table, Y[:40, 0] > 1),
        (fit(NystromClassifier(**classes), X, _LABELS).calibrate(NEW, _LABELS[:50]), NEW[:40], _LABELS[:40]),
        (MODELS["tuned"](), NEW[:40], Y[:40, 0]),
    ]
    path = tmp_path_factory.mktemp("models") / "m"
    return [(*parse(save_model(model, path, True).read_bytes()), *rows) for model, *rows in made]


def _default(originals):
    header, arrays, new, _ = originals[0]
    return copy.deepcopy(header), dict(arrays), new


def _refused(header, arrays, tmp_path):
    (tmp_path / "m").write_bytes(forge(header, arrays))
    with pytest.raises(ModelFileError, match="is damaged") as caught:
        ridgemark.load(tmp_path / "m")
    return str(caught.value)


@pytest.mark.parametrize(
    "name", ["predict", "__class__", "_rows", "", *slowly("__dict__", "save", "kernel", "n_landmarks_")]
)
def test_an_unknown_name_is_refused(name, originals, tmp_path):
    for node in (3, "text", {"dict": []}, {"Linear": {}}, {"array": False}, {"given": 0}):
        header, arrays, _ = _default(originals)
        fitted, _ = place_of(header, "model.fitted.schema")
        fitted[name] = node
        arrays[name or "x"] = np.ones(3)
        assert "must have the fields" in _refused(header, arrays, tmp_path)


def test_every_name_is_required(originals, tmp_path):
    for header, arrays, _, _ in (originals[0], originals[-1]):
        for part in ("model.fitted.schema", "model.fitted.function.kernel", "model.estimator.ridge", "model.run"):
            for name in place_of(header, part)[0]:
                less = copy.deepcopy(header)
                container, _ = place_of(less, part)
                del container[name]
                place = part.rpartition(".")[0] + f".{name}"
                kept = {key: array for key, array in arrays.items() if not f"{key}.".startswith(f"{place}.")}
                assert "must have the fields" in _refused(less, kept, tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fitted.calibration.residuals", np.full((300, 1), np.nan)),
        ("fitted.calibration.residuals", np.zeros((299, 1))),
        ("fitted.calibration.rows", np.zeros((300, 4))),
        ("fitted.calibration.indices", np.full(300, -1)),
        ("fitted.calibration.weights", np.full(300, -1.0)),
        ("fitted.left_out.values.residuals", np.full((300, 1), np.inf)),
        ("fitted.function.points", np.full((25, 3), np.nan)),
        ("fitted.function.points", np.zeros((25, 3), np.int64)),
        ("fitted.function.points", np.zeros((25, 3, 1))),
        ("fitted.function.numbers", np.full(25, 300)),
        ("fitted.function.numbers", np.full(25, -1)),
        ("fitted.function.numbers", np.zeros(25)),
        ("fitted.left_out.landmark_rows", np.full(25, 300)),
        ("fitted.function.dual_coef", np.zeros((25, 2))),
        ("fitted.function.dual_coef", np.full((25, 1), np.inf)),
        ("fitted.function.dual_coef", np.full((25, 1), 1e308)),
        ("fitted.function.dual_coef", np.zeros((25, 1), np.float32)),
        ("fitted.sums.factor.kept", np.full(25, 25)),
        ("fitted.sums.factor.kept", np.zeros(25, np.int64)),
        ("fitted.sums.factor.triangle", np.zeros((25, 24))),
        ("fitted.sums.scaled_ridge", np.zeros(1)),
        ("fitted.solution.path.chosen", np.full(1, 57)),
        ("fitted.solution.path.ridges", np.zeros(49)),
        ("fitted.solution.path.ridges", np.full(57, 1e9)),
        ("fitted.solution.path.sample", np.zeros(56, dtype=bool)),
        ("fitted.solution.path.sample", np.zeros(57)),
        ("another", np.zeros(1)),
    ],
)
def test_an_array_that_does_not_fit_is_refused(name, value, originals, tmp_path):
    header, arrays, _ = _default(originals)
    name = f"model.{name}"
    assert name in arrays or name == "model.another"
    _refused(header, arrays | {name: value}, tmp_path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("estimator", "NystromRidge"),
        ("estimator", {"NystromFeatures": {}}),
        ("estimator", {"Linear": {}}),
        ("fitted", []),
        ("fitted", {"RunRecord": {}}),
        ("fitted.function.kernel", {"_Trap": {}}),
        ("fitted.function.kernel", {"os.system": {"command": "true"}}),
        ("fitted.function.kernel", {"CrossKernel": {}}),
        ("fitted.function.kernel", {"Leverage": {}}),
        ("fitted.function.kernel", {"Gaussian": {"bandwidth": 0.0}}),
        ("fitted.function.kernel", {"Gaussian": {"bandwidth": float("nan")}}),
        ("fitted.function.kernel", {"Gaussian": {"bandwidth": "median"}}),
        ("fitted.function.kernel", {"Gaussian": {"bandwidth": [1.0, 2.0]}}),
        ("fitted.function.kernel", {"Gaussian": {}}),
        ("fitted.function.kernel", {"Gaussian": {"bandwidth": 1.0, "nonsense": 1}}),
        ("fitted.function.kernel", {"Sum": {"left": 1, "right": 2}}),
        ("fitted.function.kernel", {"Polynomial": {"degree": 10**400, "offset": 1.0, "bandwidth": 1.0}}),
        ("fitted.function.kernel", {"Polynomial": {"degree": 900, "offset": 9.0, "bandwidth": 0.1}}),
        ("fitted.function.kernel", {"Precomputed": {}}),
        ("fitted.function.kernel", {"Bernoulli": {"order": 2}}),
        ("fitted.function.kernel", {"Custom": {"function": None, "diagonal_function": None}}),
        ("fitted.function.kernel", {"given": 0}),
        ("fitted.function.kernel", {"pickle": "gANjYnVpbHRpbnM="}),
        ("fitted.schema.n_features", 4),
        ("fitted.schema.n_features", True),
        ("fitted.schema.targets.count", 2),
        ("fitted.schema.targets.flat", 1),
        ("fitted.rows.constant_columns", {"tuple": [3]}),
        ("fitted.solution.certificate.inputs", {"dict": []}),
        ("fitted.cost.n_passes", -1),
        ("fitted.cost.n_passes", 10**400),
        ("fitted.sums.moments.total_weight", 10**400),
        ("fitted.solution.solver", "magic"),
        ("fitted.solution.path.smallest", 0.0),
        ("fitted.solution.path.smallest", 1.0),
        ("fitted.solution.path.largest", 1e-9),
        ("estimator.memory_budget", 3),
        ("estimator.memory_budget", 10**5),
        ("estimator.random_state", -1),
        ("estimator.ridge", -1.0),
        ("estimator.solver", "magic"),
        ("estimator.device", "magic"),
        ("estimator.kernel", {"given": -1}),
        ("estimator.progress", "yes"),
    ],
)
def test_an_invalid_value_is_refused(path, value, originals, tmp_path):
    header, arrays, _ = _default(originals)
    container, name = place_of(header, f"model.{path}")
    container[name] = value
    if path == "estimator.memory_budget" and value > 1000:
        (tmp_path / "m").write_bytes(forge(header, arrays))
        assert ridgemark.load(tmp_path / "m").memory_budget == value
    else:
        _refused(header, arrays, tmp_path)


@pytest.mark.parametrize("value", [[3], None, "f", {"tuple": ["f"]}])
def test_functions_that_are_no_names_are_refused(value, originals, tmp_path):
    header, arrays, _ = _default(originals)
    _refused(header | {"given": value}, arrays, tmp_path)


_TWO_CLASSES = {"Classes": {"values": {"tuple": [0, 1]}, "dtype": "int64", "weights": None, "calibration": None}}


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        (0, "fitted.schema.table.fields.3.fill", 1e30),
        (0, "fitted.schema.table.fields.3.origin", -1e13),
        (0, "estimator.categorical_features", 3.0),
        (0, "fitted.classes", _TWO_CLASSES),
        (2, "fitted.classes", None),
        (2, "fitted.classes.values", {"tuple": [False]}),
        (3, "fitted.classes.dtype", "int64"),
        (3, "fitted.classes.values", {"tuple": ["a", "b"]}),
        (3, "fitted.classes.values", {"tuple": ["a", "a", "c"]}),
        (3, "fitted.classes.values", {"tuple": ["a", "b", []]}),
        (3, "fitted.classes.values", {"tuple": ["a", "b", 10**30]}),
    ],
)
def test_an_invalid_value_of_a_table_or_of_classes_is_refused(kind, path, value, of_tables_and_classes, tmp_path):
    header, arrays, *_ = of_tables_and_classes[kind]
    header = copy.deepcopy(header)
    container, name = place_of(header, f"model.{path}")
    assert name in container
    container[name] = value
    _refused(header, arrays, tmp_path)


@pytest.mark.parametrize("values", [np.ones(()), np.ones((4, 3)), np.ones(4)])
def test_what_tuning_saw_has_its_number_of_columns(values, of_tables_and_classes, tmp_path):
    header, arrays, *_ = of_tables_and_classes[4]
    _refused(header, arrays | {"model.fitted.tuning.descents.0.looks": values}, tmp_path)


def test_every_array_of_a_record_has_its_sides():
    records = SCHEMA.keys() - OBJECTS.keys()
    assert len(records) > 20
    for record in records:
        for name, hint in saved_hints(SCHEMA[record]).items():
            assert "ndarray" not in str(hint) or "'(" in str(hint), f"{record}.{name}"


def test_records_of_one_name_are_one_class():
    assert all(name == kind.__name__ for name, kind in SCHEMA.items())


@pytest.mark.parametrize("name", ["exact precomputed", "exact sparse"])
@pytest.mark.parametrize("size", [10**8, 10**12, 2**62])
def test_a_number_of_columns_takes_no_memory(name, size, tmp_path):
    """A row number and a sparse row say nothing of the number of columns."""
    header, arrays = parse(MODELS[name]().save(tmp_path / "m").read_bytes())
    for entry in ("n_features", "n_encoded"):
        place_of(header, "model.fitted.schema." + entry)[0][entry] = size
    points, _ = place_of(header, "model.fitted.function.points")
    if points["points"] is not None and "csr" in points["points"]:
        points["points"]["csr"][2] = size
    (tmp_path / "m").write_bytes(forge(header, arrays))
    tracemalloc.start()
    with suppress(ModelFileError):
        ridgemark.load(tmp_path / "m")
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


def test_a_sparse_matrix_with_an_index_out_of_range_is_refused(originals, tmp_path):
    name = "model.fitted.function.points.indices"
    header, arrays = next((h, a) for h, a, _, _ in originals if name in a)
    _refused(header, arrays | {name: np.full_like(arrays[name], 1 << 30)}, tmp_path)


@pytest.mark.parametrize("ends", [{-1: -1}, {-2: 2**30, -1: -(2**31)}, {3: 2**31 - 1, 4: -(2**31)}, {0: 3}, {-1: 76}])
def test_a_sparse_matrix_with_rows_out_of_order_is_refused(ends, originals, tmp_path):
    name = "model.fitted.function.points.indptr"
    header, arrays = next((h, a) for h, a, _, _ in originals if name in a)
    wrong = arrays[name].astype(np.int32)
    wrong[list(ends)] = list(ends.values())
    _refused(header, arrays | {name: wrong}, tmp_path)


# Random mutations

_NODES = [None, True, False, -1, 0, 1, 2, 3, 10**30, 10**400, 0.0, -2.5, 1e-300, 1e300, float("nan"), float("inf"), ""]
_NODES += ["predict", "gcv", "gradient", "median", [], [1.0], {}, {"tuple": []}, {"array": False}, {"array": True}]
_NODES += [{"dict": []}, {"csr": [True, 5, 5]}, {"given": 0}, {"Linear": {}}, {"words": ["a", "b", "c"]}]
_NODES += [{"Gaussian": {"bandwidth": 1e-200}}, {"Cosine": {}}]
_NODES += [{"Polynomial": {"degree": 60, "offset": 1e5, "bandwidth": 1e-3}}]


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


def _questions(model, new, path, run=None):
    """Call all other methods; an error of the package is allowed too."""
    asked = [
        lambda: repr(model),
        lambda: model.ridge_path_ is None or model.ridge_path_.on_edge,
        lambda: str(model.tuning_),
        lambda: save_model(model, path, True, run=run),
    ]
    if not isinstance(model, ExactKernelRidge):
        asked += [lambda: model.effects(new), lambda: str(model.certificate_)]
    if isinstance(model, NystromRidge):
        asked += [
            lambda: model.predict(new, return_std=True),
            lambda: model.predict_interval(new, 0.5),
            lambda: str(model.diagnose()),
            lambda: (model.certificate_.to_html(), model.certificate_.vacuous),
        ]
    if isinstance(model, NystromClassifier):
        asked += [lambda: model.predict_proba(new), lambda: model.predict_set(new)]
    for ask in asked:
        try:
            ask()
        except RidgemarkError:
            pass
        except AttributeError as error:
            assert "has no attribute" in str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", [75, pytest.param(3000, marks=pytest.mark.slow)])
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
        _questions(model, new, path)
    assert 0.02 * count < loaded < 0.6 * count  # some mutations change nothing essential


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", [50, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_mutated_file_of_a_table_or_of_classes_is_refused_or_answers(count, of_tables_and_classes, tmp_path):
    rng, path, loaded = np.random.default_rng(count), tmp_path / "m", 0
    for number in range(count):
        header, arrays, new, targets = of_tables_and_classes[number % len(of_tables_and_classes)]
        path.write_bytes(_mutated(header, arrays, rng))
        try:
            model = ridgemark.load(path)
        except RidgemarkError:
            continue
        loaded += 1
        try:
            found = model.predict(new)
        except ValueError as error:  # scikit-learn's, of columns with other names
            assert "The feature names should match" in str(error)
            continue
        assert len(found) == len(targets)
        assert found.dtype.kind != "f" or np.isfinite(found).all()
        _questions(model, new, path)
    assert 0.02 * count < loaded < 0.6 * count


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", [100, pytest.param(8000, marks=pytest.mark.slow)])
def test_a_file_with_one_value_replaced_is_refused_or_answers(count, of_tables_and_classes, tmp_path):
    rng, path, loaded = np.random.default_rng(count), tmp_path / "m", 0
    for number in range(count):
        header, arrays, new, targets = of_tables_and_classes[number % len(of_tables_and_classes)]
        header = copy.deepcopy(header)
        places = [
            place
            for part in ("estimator", "fitted.schema", "fitted.classes", "fitted.tuning")
            for place in _places(_part(header, part))
        ]
        node, key = places[rng.integers(len(places))]
        node[key] = copy.deepcopy(_NODES[rng.integers(len(_NODES))])
        path.write_bytes(forge(header, arrays))
        try:
            model, run = load_model(path, (NystromRidge, NystromClassifier, ExactKernelRidge))
        except RidgemarkError:
            continue
        loaded += 1
        try:
            assert len(model.predict(new)) == len(targets)
        except RidgemarkError:
            pass
        except ValueError as error:  # scikit-learn's, of columns with other names
            assert "The feature names should match" in str(error)
            continue
        _questions(model, new, path, run)
    assert 0.02 * count < loaded < 0.6 * count


def _part(header, name):
    container, key = place_of(header, f"model.{name}")
    return container.get(key)
