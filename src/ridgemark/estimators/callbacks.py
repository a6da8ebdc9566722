"""Callbacks of scikit-learn: those that `set_callbacks` adds follow the fit, its passes and the tenths of each."""

from collections.abc import Callable
from typing import Any, Self

from ridgemark.errors import RidgemarkError
from ridgemark.passes.progress import Progress

_PARTS = 10  # of a pass


class TakesCallbacks:
    """An estimator whose fit callbacks of scikit-learn follow."""

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set callbacks of scikit-learn 1.9 or newer, such as `sklearn.callback.ProgressBar()`; none removes them.

        They are told when the fit begins and ends, and of each pass over the rows. One that returns true stops the fit
        with an error; an earlier fit stays.
        """
        return _framework().CallbackSupportMixin.set_callbacks(self, *callbacks)


def _framework() -> Any:
    """Return scikit-learn's module, which takes long to import."""
    try:
        from sklearn import callback
    except ImportError:
        raise RidgemarkError(
            "set_callbacks needs scikit-learn 1.9 or newer; install it, or follow the fit with progress="
        ) from None
    return callback


def told_to_callbacks(estimator: Any, X: Any, y: Any, fit: Callable[[], None]) -> None:
    """Run a fit, and tell the estimator's callbacks when it begins and ends."""
    framework, rows = _framework(), {"X": X, "y": y}

    def told(estimator: Any) -> None:
        context = framework.CallbackSupportMixin._init_callback_context(estimator, max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator, **rows)
        fit()
        context.call_on_fit_task_end(estimator=estimator, **rows, reconstruction_attributes={})

    framework.with_callbacks(told)(estimator)


def with_callback_progress(estimator: Any, progress: Progress | None) -> Progress:
    """Return the progress callback that tells the callbacks of the fit that runs too."""
    of_callbacks = _PassTasks(estimator, estimator._callback_fit_ctx)

    def both(what: str, done: int, total: int) -> None:
        if progress is not None:
            progress(what, done, total)
        of_callbacks(what, done, total)

    return both


class _PassTasks:
    """Makes a task of each pass, or of the tuning; of one that takes several steps, with a task for each tenth."""

    def __init__(self, estimator: Any, context: Any) -> None:
        self.estimator, self.context = estimator, context
        self.task: Any = None
        self.n_ended = 0

    def __call__(self, what: str, done: int, total: int) -> None:
        if self.task is not None and self.task.task_name != what:  # tuning may end early
            self._end(self.task)
            self.task = None
        if self.task is None:
            self.task, self.n_ended = self._begin(self.context, what, _PARTS if done < total else 0), 0
        while self.task.max_subtasks and self.n_ended < _PARTS * done // total:
            self._end(self._begin(self.task, "part", 0))
            self.n_ended += 1
        if done == total:
            self._end(self.task)
            self.task = None

    def _begin(self, parent: Any, name: str, max_subtasks: int) -> Any:
        task = parent.subcontext(name, max_subtasks=max_subtasks)
        return task.call_on_fit_task_begin(estimator=self.estimator)

    def _end(self, task: Any) -> None:
        if task.call_on_fit_task_end(estimator=self.estimator):
            raise RidgemarkError("a callback stopped the fit; an earlier fit of this estimator stays as it was")
