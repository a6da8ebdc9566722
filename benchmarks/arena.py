"""ridgemark as a model of TabArena, the benchmark of tables whose peers are tuned by their authors.

TabArena gives each fit a table, checks it on its own splits, bags it, and compares with the results it keeps of other
models. The class below is the `AbstractModel` of AutoGluon that it asks for. Columns are handed over as they are:
ridgemark encodes categories and gaps itself. There is no limit of time to give to a fit, so `time_limit` is ignored.

Run: pip install tabarena; python benchmarks/arena.py [--datasets NAME ...]. It loads tables and the results of other
models from the network.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from autogluon.core.models import AbstractModel
from threadpoolctl import threadpool_limits

from ridgemark import NystromClassifier, NystromRidge


class RidgemarkModel(AbstractModel):
    """`NystromRidge` for numbers, `NystromClassifier` for labels; hyperparameters are those of the estimators."""

    ag_key = "RIDGEMARK"
    ag_name = "Ridgemark"

    def _fit(self, X: Any, y: Any, num_cpus: int = 1, num_gpus: float = 0, **_: Any) -> None:
        """Fit to a table; `num_gpus` above 0 computes on a GPU."""
        estimator = NystromRidge if self.problem_type == "regression" else NystromClassifier
        self.model = estimator(device="cuda" if num_gpus else "cpu", **self._get_model_params())
        with threadpool_limits(num_cpus):
            self.model.fit(self.preprocess(X, y=y, is_train=True), y)

    def _set_default_params(self) -> None:
        self._set_default_param_value("random_state", 0)

    def _get_default_auxiliary_params(self) -> dict[str, Any]:
        """Say which columns `_fit` takes; AutoGluon makes these of all others."""
        return super()._get_default_auxiliary_params() | {"valid_raw_types": ["bool", "int", "float", "category"]}

    @classmethod
    def supported_problem_types(cls) -> list[str]:
        """Return the kinds of targets that `_fit` takes."""
        return ["binary", "multiclass", "regression"]

    @classmethod
    def config_generator(cls) -> Any:
        """Return the defaults, and what TabArena's own search may draw beside them."""
        from autogluon.common.space import Categorical
        from tabarena.utils.config_utils import ConfigGenerator

        kernels = Categorical("auto", "gaussian", "matern32", "laplacian")
        return ConfigGenerator(model_cls=cls, manual_configs=[{}], search_space={"kernel": kernels})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", help="only these tables; by default all")
    parser.add_argument("--searched", type=int, default=0, help="so many further configurations")
    parser.add_argument("--output", type=Path, default=Path("arena"), help="folder of the results")
    options = parser.parse_args()
    from tabarena.benchmark.experiment import TabArenaV0pt1ExperimentBundle
    from tabarena.contexts import TabArenaContext

    bundle = TabArenaV0pt1ExperimentBundle(models=[(RidgemarkModel.config_generator(), options.searched)])
    context = TabArenaContext()
    context.build_and_run_jobs(
        bundle.build_experiments(),
        expname=str(options.output / "fits"),
        subset="lite",
        build_kwargs={"dataset_names": options.datasets} if options.datasets else {},
        debug_mode=True,  # fits in this process
    )
    print(context.compare(output_dir=options.output).to_string())


if __name__ == "__main__":
    main()
