"""The seed of a plan without account: secret, its user's own, and the same after a crash."""

import stat
from pathlib import Path

from vesper.deployment.data_process import with_secret_seed
from vesper.method.base import Sizes
from vesper.session.config import load_config
from vesper.session.run_spec import agreement_of

SIZES = Sizes(num_nodes=60, num_train=20, num_features=2, num_classes=2)


def test_a_seed_that_nobody_else_knows(tmp_path: Path) -> None:
    config = load_config(None, {"method": "vesper-paper-gin", "seed": 3})
    agreement = agreement_of(config, SIZES, num_val=20, num_test=20)
    first = with_secret_seed(agreement, tmp_path / "seed").config.run.seed
    other = with_secret_seed(agreement, tmp_path / "other").config.run.seed
    assert len({first, other, 3}) == 3
    assert with_secret_seed(agreement, tmp_path / "seed").config.run.seed == first
    assert stat.S_IMODE((tmp_path / "seed").stat().st_mode) == 0o600
    assert agreement.config.run.seed == 3, "what both sides agreed on stays as it is"
