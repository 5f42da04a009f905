"""A launcher for Hydra: `hydra/launcher=berth` runs a multirun as an array of jobs of Berth, through submitit.

Hydra looks into all modules of this folder when it starts, so this one says nothing where its launcher for submitit is
not installed.
"""

import contextlib
from dataclasses import dataclass, make_dataclass
from typing import Any, List, Optional  # of fields that Hydra reads, also on Python 3.9

with contextlib.suppress(ImportError):
    from berth._request_fields import JOB_ARGUMENTS
    from hydra.core.config_store import ConfigStore
    from hydra_plugins.hydra_submitit_launcher.config import BaseQueueConf
    from hydra_plugins.hydra_submitit_launcher.submitit_launcher import BaseSubmititLauncher

    class BerthLauncher(BaseSubmititLauncher):
        _EXECUTOR = "berth"

        def __init__(self, yields: Any = None, **params: Any) -> None:
            # A field cannot be called `yield`.
            super().__init__(**params, **{"yield": yields})

    @dataclass
    class BerthQueueConf(BaseQueueConf):
        """As of submitit's other executors; the rest is what docs/coming-from.md says of berth_…"""

        _target_: str = "hydra_plugins.berth_launcher.BerthLauncher"

        max_num_timeout: int = 3
        signal_delay_s: int = 90
        array_parallelism: Optional[int] = None
        setup: Optional[List[str]] = None
        note: Optional[str] = None
        notify: Optional[str] = None
        yields: Any = None

    # What else a request can say. The number of GPUs, the time and yielding have names of
    # submitit's own.
    _REQUEST = make_dataclass(
        "BerthRequestConf",
        [(name, Any, None) for name in sorted({*JOB_ARGUMENTS} - {"n", "time", "yield_"})],
        bases=(BerthQueueConf,),
    )

    ConfigStore.instance().store(group="hydra/launcher", name="berth", node=_REQUEST(), provider="berth")
