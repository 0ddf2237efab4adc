"""The command that repeats a simulation: everything that is not as the method has it by itself."""

import json
import shlex
from collections.abc import Sequence

from vesper.method.settings import Config
from vesper.run.config import load_config


def command_of(config: Config, *, snapshots: Sequence[str] = ()) -> str:
    """Write the command; folders are the reader's, and so are those of `snapshots`.

    >>> command_of(load_config(None, {"epsilon": 1.0, "epochs": 5}))
    'vesper simulate --data DATA --out OUT --method vesper --set epsilon=1.0 --set epochs=5'
    """
    usual = load_config(None, {"method": config.run.method}).model_dump()
    settings = [
        f"{key}={value if isinstance(value, str) else json.dumps(value)}"
        for table, values in config.model_dump().items()
        for key, value in values.items()
        if value != usual[table][key]
    ]
    options = [word for setting in settings for word in ("--set", setting)]
    start = ["vesper", "simulate", "--data", "DATA", "--out", "OUT", "--method", config.run.method]
    later = [word for name in snapshots for word in ("--snapshot", name)]
    return shlex.join([*start, *later, *options])
