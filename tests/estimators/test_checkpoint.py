"""A fit that was killed goes on from its checkpoint, and ends with the same model."""

import hashlib
import inspect
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from ridgemark import ExactKernelRidge, NystromClassifier, NystromRidge, load, open_rows
from ridgemark.errors import CheckpointError, ParameterError, SourceFileError
from ridgemark.passes import Journal
from ridgemark.passes.journal import _MAGIC, _TOKEN, _record
from ridgemark.tuning import Tuner
from tests.helpers import slowly

FEW = Tuner(rows=200, judging_rows=80, landmarks=40, evaluations=4, kernels=("gaussian", "matern32"))


class Killed(BaseException):
    pass


def _rows(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 3)), 2)
    return X, np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=n)


ESTIMATORS = {
    "tuned": lambda: NystromRidge(bandwidth=FEW, n_landmarks=120, random_state=0),
    "leverage": lambda: NystromRidge(bandwidth="median", selection="leverage", random_state=3),
    "gradient": lambda: NystromRidge(bandwidth=1.0, ridge=1e-4, n_landmarks=100, solver="gradient", random_state=0),
    "certified": lambda: NystromRidge(bandwidth=1.0, n_landmarks=20, certify_with="trace", random_state=1),
    "exact": lambda: ExactKernelRidge(bandwidth=1.0, ridge=1e-4, n_landmarks=60, tol=1e-4, random_state=0),
    "exact, tuned": lambda: ExactKernelRidge(bandwidth=FEW, ridge=1e-3, n_landmarks=60, tol=1e-4, random_state=0),
}
QUICK = ("tuned", "gradient", "certified", "exact")


def _labels(seed=0):
    X, y = _rows(600, seed)
    return X, np.digitize(y, np.quantile(y, [0.3, 0.6]))


def _bytes(model, folder):
    model.save(folder / "model.rm")
    return (folder / "model.rm").read_bytes()


def _kill_after(monkeypatch, number):
    """Let a fit write whenever it can, and die after that many writes."""
    write, count = Journal.write, [0]

    def dying(self, *args):
        write(self, *args)
        self._next_write = 0.0
        count[0] += 1
        if count[0] == number:
            raise Killed

    monkeypatch.setattr(Journal, "write", dying)
    return count


@pytest.mark.parametrize("name", [*slowly("leverage", "exact, tuned"), *QUICK])
@pytest.mark.parametrize("kills", [2, *slowly(12)])
def test_a_fit_goes_on_from_any_write_and_ends_with_the_same_bytes(name, kills, tmp_path, monkeypatch):
    X, y = _rows()
    make, path = ESTIMATORS[name], tmp_path / "fit.checkpoint"
    expected = _bytes(make().fit(X, y, checkpoint=path), tmp_path)
    with monkeypatch.context() as context:
        count = _kill_after(context, -1)
        assert _bytes(make().fit(X, y, checkpoint=path), tmp_path) == expected
    assert count[0] > 5
    for number in {int(k) for k in np.linspace(1, count[0] - 1, kills)}:
        with monkeypatch.context() as context:
            _kill_after(context, number)
            with pytest.raises(Killed):
                make().fit(X, y, checkpoint=path)
        assert path.exists()
        assert _bytes(make().fit(X, y, checkpoint=path), tmp_path) == expected
        assert [file.name for file in tmp_path.iterdir()] == ["model.rm"]


@pytest.mark.parametrize("name", [*slowly("leverage", "exact, tuned"), *QUICK])
def test_a_checkpoint_changes_no_bit_of_a_fit(name, tmp_path):
    X, y = _rows()
    plain, kept = ESTIMATORS[name]().fit(X, y), ESTIMATORS[name]().fit(X, y, checkpoint=tmp_path / "fit.checkpoint")
    assert _bytes(plain, tmp_path) == _bytes(kept, tmp_path)


@pytest.mark.parametrize("number", [28, *slowly(*range(4, 38, 3))])
def test_results_are_written_as_they_were_however_late(number, tmp_path, monkeypatch):
    X, y = _rows()
    X, y = np.vstack([X, X[:300]]), np.r_[y, 1.0 - y[:300]]  # a fit overwrites the targets of equal rows
    make, path, asked = ESTIMATORS["leverage"], tmp_path / "fit.checkpoint", []
    expected, write = _bytes(make().fit(X, y, checkpoint=path), tmp_path), Journal.write

    def die(self, *args):
        write(self, *args)
        raise Killed

    with monkeypatch.context() as context:
        context.setattr(Journal, "is_due", property(lambda self: asked.append(1) or len(asked) >= number))
        context.setattr(Journal, "write", die)
        with pytest.raises(Killed):
            make().fit(X, y, checkpoint=path)
    assert _bytes(make().fit(X, y, checkpoint=path), tmp_path) == expected


def test_a_fit_of_classes_goes_on(tmp_path, monkeypatch):
    X, labels = _labels()
    path, model = tmp_path / "c", NystromClassifier("gaussian", bandwidth=1.0, n_landmarks=60, random_state=0)
    expected = _bytes(model.fit(X, labels, checkpoint=path), tmp_path)
    for number in (5, 12):
        with monkeypatch.context() as context:
            _kill_after(context, number)
            with pytest.raises(Killed):
                model.fit(X, labels, checkpoint=path)
        assert _bytes(model.fit(X, labels, checkpoint=path), tmp_path) == expected


def test_a_fit_killed_again_and_again_ends(tmp_path, monkeypatch):
    X, y = _rows()
    make, path, n_kills = ESTIMATORS["tuned"], tmp_path / "fit.checkpoint", 0
    expected = _bytes(make().fit(X, y, checkpoint=path), tmp_path)
    while True:
        with monkeypatch.context() as context:
            _kill_after(context, 3)
            try:
                model = make().fit(X, y, checkpoint=path)
            except Killed:
                n_kills += 1
            else:
                break
        assert n_kills < 100
    assert n_kills > 2
    assert _bytes(model, tmp_path) == expected


def test_what_was_computed_is_not_computed_again(tmp_path, monkeypatch):
    X, y = _rows()
    seen, again = [], ("tuning", "randomly pivoted Cholesky")  # landmarks are chosen again
    model = NystromRidge(bandwidth=FEW, n_landmarks=120, random_state=0, progress=lambda *args: seen.append(args))
    with monkeypatch.context() as context:
        count = _kill_after(context, -1)
        model.fit(X, y, checkpoint=tmp_path / "c")
        everything = len([one for one in seen if one[0] not in again])
        _kill_after(context, count[0] - 1)
        with pytest.raises(Killed):
            model.fit(X, y, checkpoint=tmp_path / "c")
    seen.clear()
    model.fit(X, y, checkpoint=tmp_path / "c")
    assert len([one for one in seen if one[0] not in again]) < everything / 4


def test_without_a_seed_the_fit_goes_on_with_the_one_it_drew(tmp_path, monkeypatch):
    X, y = _rows()
    path = tmp_path / "c"
    with monkeypatch.context() as context:
        _kill_after(context, 4)
        with pytest.raises(Killed):
            NystromRidge(bandwidth=1.0, n_landmarks=50).fit(X, y, checkpoint=path)
    kept = path.read_bytes()
    models = []
    for _ in range(2):
        path.write_bytes(kept)
        models.append(_bytes(NystromRidge(bandwidth=1.0, n_landmarks=50).fit(X, y, checkpoint=path), tmp_path))
    assert models[0] == models[1]


def _torn(whole):
    return [whole[:length] for length in (len(whole) - 1, len(whole) // 2, 50, len(_MAGIC) + _TOKEN)]


def _with_wrong_lengths(whole):
    places = range(len(_MAGIC) + _TOKEN, len(_MAGIC) + _TOKEN + 8)  # of the length of the first record
    return [whole[:k] + bytes([whole[k] ^ 0x7F]) + whole[k + 1 :] for k in places]


@pytest.mark.parametrize("damaged", [_torn, _with_wrong_lengths])
def test_a_record_that_is_torn_or_has_a_wrong_length_is_not_read(damaged, tmp_path, monkeypatch):
    X, y = _rows()
    make, path = ESTIMATORS["certified"], tmp_path / "c"
    expected = _bytes(make().fit(X, y, checkpoint=path), tmp_path)
    with monkeypatch.context() as context:
        _kill_after(context, 5)
        with pytest.raises(Killed):
            make().fit(X, y, checkpoint=path)
    for content in damaged(path.read_bytes()):
        path.write_bytes(content)
        assert _bytes(make().fit(X, y, checkpoint=path), tmp_path) == expected


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda model, X, y: (model.set_params(n_landmarks=60), X, y), "n_landmarks was 50 and is 60"),
        (lambda model, X, y: (model, X + 1.0, y), "the data was 900 rows of 3 columns"),
        (lambda model, X, y: (model, X, y + 1.0), "the data was"),
        (lambda model, X, y: (model.set_params(random_state=1), X, y), "random_state was 0 and is 1"),
        (lambda model, X, y: (model.set_params(kernel="matern32"), X, y), "kernel was 'gaussian' and is 'matern32'"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused_and_the_difference_named(change, named, tmp_path, monkeypatch):
    X, y = _rows()
    model = NystromRidge("gaussian", bandwidth=1.0, n_landmarks=50, random_state=0)
    with monkeypatch.context() as context:
        _kill_after(context, 3)
        with pytest.raises(Killed):
            model.fit(X, y, checkpoint=tmp_path / "c")
    other, X, y = change(model, X, y)
    with pytest.raises(CheckpointError, match=named):
        other.fit(X, y, checkpoint=tmp_path / "c")


def test_a_checkpoint_in_use_is_refused(tmp_path):
    X, y = _rows()
    model, path = NystromRidge(bandwidth=1.0, n_landmarks=50, random_state=0), tmp_path / "c"

    def fit_again(*progress):
        with pytest.raises(CheckpointError, match="still running"):
            NystromRidge(bandwidth=1.0, n_landmarks=50, random_state=0).fit(X, y, checkpoint=path)

    model.set_params(progress=fit_again).fit(X, y, checkpoint=path)
    assert not path.exists()


def test_other_files_and_places_are_refused(tmp_path):
    X, y = _rows(50)
    for path in (tmp_path / "none" / "c", tmp_path):
        with pytest.raises(CheckpointError):
            NystromRidge(bandwidth=1.0).fit(X, y, checkpoint=path)
    with pytest.raises(ParameterError, match="None or an integer"):
        NystromRidge(bandwidth=1.0, random_state=np.random.RandomState(0)).fit(X, y, checkpoint=tmp_path / "c")


@pytest.mark.parametrize(
    "content", [b"keep me, please", b"", _MAGIC[:10], _MAGIC, _MAGIC + b"/../notes.txt   "], ids=repr
)
def test_a_file_that_is_no_checkpoint_is_refused_and_kept(content, tmp_path):
    X, y = _rows(50)
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"notes\.txt' is not a checkpoint: .* (begins with|is empty).*; give"):
        NystromRidge(bandwidth=1.0).fit(X, y, checkpoint=path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]
    assert path.read_bytes() == content


def test_files_that_the_fit_did_not_write_stay_as_they_are(tmp_path, monkeypatch):
    X, y = _rows()
    path, make = tmp_path / "c", ESTIMATORS["certified"]
    others = {name: f"my {name}" for name in ("c.new", "c.pass", "c.txt")}
    for name, content in others.items():
        (tmp_path / name).write_text(content)
    with monkeypatch.context() as context:
        _kill_after(context, 5)
        with pytest.raises(Killed):
            make().fit(X, y, checkpoint=path)
    make().fit(X, y, checkpoint=path)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == others


def test_a_new_fit_does_not_go_on_from_a_pass_of_a_removed_checkpoint(tmp_path, monkeypatch):
    X, y = _rows(2000)
    path, write, make, n_states = tmp_path / "c", Journal.write, ESTIMATORS["certified"], []
    expected = _bytes(make().fit(X, y, checkpoint=path), tmp_path)

    def die_within_a_pass_over_targets(self, *args):
        write(self, *args)
        self._next_write = 0.0
        n_states.extend(args[:1])
        if len(n_states) == 19:
            raise Killed

    with monkeypatch.context() as context:
        context.setattr(Journal, "write", die_within_a_pass_over_targets)
        with pytest.raises(Killed):
            make().fit(X, y + 1.0, checkpoint=path)
    (state,) = tmp_path.glob("c.*")
    path.unlink()
    assert _bytes(make().fit(X, y, checkpoint=path), tmp_path) == expected
    assert state.exists()


@pytest.mark.parametrize(
    "name", ["posix\nsystem", "ridgemark.passes.journal\nos.system", "ridgemark.passes.journal\nPath"]
)
def test_a_checkpoint_calls_nothing_that_it_names(name, tmp_path):
    X, y = _rows(50)
    called = tmp_path / "called"
    payload = f"c{name}\n(Vtouch {called}\ntR.".encode()
    checksum = hashlib.blake2b(payload, digest_size=16).digest()
    (tmp_path / "c").write_bytes(_MAGIC + _TOKEN * b"0" + len(payload).to_bytes(8, "little") + checksum + payload)
    with pytest.raises(CheckpointError, match="what no fit writes"):
        NystromRidge(bandwidth=1.0, random_state=0).fit(X, y, checkpoint=tmp_path / "c")
    assert not called.exists()


@pytest.mark.parametrize("record", [5, ["key"], ([], 1), (("begun",), 5), (("begun",), (1, 2)), (("begun",), ({}, {}))])
def test_a_checkpoint_that_begins_with_another_record_is_refused(record, tmp_path):
    X, y = _rows(50)
    (tmp_path / "c").write_bytes(_MAGIC + _TOKEN * b"0" + _record(pickle.dumps(record)))
    with pytest.raises(CheckpointError, match="what no fit writes; remove"):
        NystromRidge(bandwidth=1.0, random_state=0).fit(X, y, checkpoint=tmp_path / "c")


def test_an_error_of_the_data_is_not_blamed_on_the_checkpoint(tmp_path):
    X, y = _rows(3000)
    np.save(tmp_path / "rows.npy", X)
    source = open_rows(tmp_path / "rows.npy", target=y)

    def shorten(*progress):
        np.save(tmp_path / "rows.npy", X[:100])

    with pytest.raises(SourceFileError, match=r"rows\.npy"):
        NystromRidge(bandwidth=1.0, n_landmarks=50, progress=shorten).fit(source, checkpoint=tmp_path / "c")


def test_a_fit_of_sparse_rows_goes_on(tmp_path, monkeypatch):
    X, y = _rows()
    X = sparse.csr_array(np.where(abs(X) > 0.7, X, 0.0))
    model = NystromRidge(bandwidth="median", n_landmarks=60, random_state=0)
    expected = _bytes(model.fit(X, y, checkpoint=tmp_path / "c"), tmp_path)
    with monkeypatch.context() as context:
        _kill_after(context, 8)
        with pytest.raises(Killed):
            model.fit(X, y, checkpoint=tmp_path / "c")
    assert _bytes(model.fit(X, y, checkpoint=tmp_path / "c"), tmp_path) == expected


def _fit(data, path):
    model = NystromRidge(bandwidth="median", selection="leverage", random_state=0, memory_budget=2**24)
    print("begin", flush=True)
    model.fit(open_rows(data, target=-1), checkpoint=path + ".checkpoint")
    model.save(path)


_SCRIPT = f"""
import sys
from ridgemark import NystromRidge, open_rows
{inspect.getsource(_fit)}
_fit(*sys.argv[1:])
"""


def _write(path, X, y):
    columns = np.c_[X, y]
    if path.suffix == ".npy":
        np.save(path, columns)
    elif path.suffix == ".csv":
        np.savetxt(path, columns, delimiter=",", header="a,b,c,y", comments="", fmt="%.17g")
    else:
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        pq.write_table(pa.table(dict(zip("abcy", columns.T, strict=True))), path)


def _run_and_kill(data, path, patience):
    """Fit in another process, and kill it some seconds after its fit began."""
    with subprocess.Popen([sys.executable, "-c", _SCRIPT, data, path], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"begin\n"
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
    assert process.returncode in (0, -signal.SIGKILL)


@pytest.mark.parametrize(
    ("ending", "repeats"),
    [(".csv", 1), *(pytest.param(name, 34, marks=pytest.mark.slow) for name in (".csv", ".npy", ".parquet"))],
)
def test_a_killed_process_goes_on_with_its_files(ending, repeats, tmp_path):
    rng = np.random.default_rng(0)
    data, model, killed = tmp_path / f"rows{ending}", tmp_path / "model.rm", 0
    _write(data, *_rows(1500))
    begin = time.perf_counter()
    _fit(str(data), str(model))
    longest, expected = time.perf_counter() - begin, model.read_bytes()
    while killed < repeats:
        model.unlink()
        _run_and_kill(str(data), str(model), rng.uniform(0.0, longest))
        if not model.exists():  # it was killed before its end
            killed += 1
            _fit(str(data), str(model))
        assert model.read_bytes() == expected
        assert not list(tmp_path.glob("*.checkpoint*"))
    assert load(model).n_landmarks_ > 0


def test_rows_of_very_many_features_are_tuned_with_a_checkpoint(tmp_path):
    wide = sparse.random(150, 600, density=0.02, random_state=0, format="csr")
    model = NystromRidge(n_landmarks=40, random_state=0)
    y = wide[:, :5].toarray().sum(axis=1)
    expected = clone(model).fit(wide, y).predict(wide)
    found = model.fit(wide, y, checkpoint=tmp_path / "fit.checkpoint").predict(wide)
    assert found == pytest.approx(expected, abs=1e-9)
