"""The seed of a plan without account: secret, readable by its user only, equal after a crash."""

import stat
from pathlib import Path

from vesper.deployment.data_process import with_secret_seed
from vesper.method.base import PublicSizes
from vesper.session.config import load_config
from vesper.session.run_spec import make_run_spec

SIZES = PublicSizes(num_nodes=60, num_train=20, num_features=2, num_classes=2)


def test_the_seed_is_secret_and_stored(tmp_path: Path) -> None:
    config = load_config(None, {"method": "paper-gin", "seed": 3})
    run_spec = make_run_spec(config, SIZES, num_val=20, num_test=20)
    first = with_secret_seed(run_spec, tmp_path / "seed").config.run.seed
    other = with_secret_seed(run_spec, tmp_path / "other").config.run.seed
    assert len({first, other, 3}) == 3
    assert with_secret_seed(run_spec, tmp_path / "seed").config.run.seed == first
    assert stat.S_IMODE((tmp_path / "seed").stat().st_mode) == 0o600
    assert run_spec.config.run.seed == 3, "what both sides agreed on stays as it is"
