"""Trained model: both halves of a trained pair on one graph, and what restores them.

    save:     settings, sizes, roster, weights, fitted constants, releases, features
    restore:  make both halves anew, load the weights, give out the stored releases stage by stage

A restored model computes with the same numbers in the same order, so its predictions are the same
bit for bit, except where a method draws a new sample for each of them.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vesper.api.model_file import Arrays, Facts
from vesper.errors import InputError
from vesper.graph.features import Features
from vesper.graph.ids import Ids
from vesper.mechanism.stored_door import StoredDoor
from vesper.method.base import PublicSizes
from vesper.method.settings import Config
from vesper.model.decoders import Decoder
from vesper.model.evaluation import Calibration
from vesper.party.inference import InferenceParty, trained_arrays
from vesper.party.representation import Representation
from vesper.party.state import arrays_of, load_weights, weights_of, with_prefix, without_prefix
from vesper.protocol.messages import Roster
from vesper.session.run_spec import RunSpec, make_run_spec

if TYPE_CHECKING:
    from vesper.api.encoder import MakeEncoder

FOR_WHOM = {
    "decoder/": "the label party's weights; trained with its labels",
    "evaluation/": "labels and predictions of validation nodes; for whoever may see these labels",
    "features": "the data party's own features; they may not leave it",
    "release/": "what was released of the graph; {releases}",
    "roster/": "labels of training nodes; for the two parties only",
    "trained/": "the data party's weights and constants; fitted to its features, which the "
    "guarantee for edges does not protect",
}
COVERED = (
    "covered by the guarantee in `privacy`, also if the label party sees all of it; it is stored "
    "for the data party, and need not leave it: predictions are computed from it"
)
UNPROTECTED = "not protected by any guarantee: keep it as you keep the graph, and give it to nobody"


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedModel:
    """Both halves on one graph."""

    run_spec: RunSpec
    data_side: Representation
    label_side: Decoder
    stage: int
    """Stage that validation chose."""
    last_stage: int
    """Last stage whose releases were made on this graph."""
    roster: Roster
    features: Features
    ids: Ids | None
    """Ids of the nodes, if they have others than their numbers."""
    calibration: Calibration
    releases: Sequence[Arrays]
    reads_graph: bool
    """Whether predictions read the graph itself, which is never stored."""
    has_own_encoder: bool
    is_new: bool = False
    """Whether the graph came after training."""

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the graph."""
        return self.run_spec.sizes.num_nodes

    @property
    def node_ids(self) -> Ids:
        """Ids of the nodes: as given, or their numbers."""
        return self.ids or numbers_as_ids(self.num_nodes)

    def stored(self, *, is_protected: bool) -> tuple[Facts, Arrays]:
        """Return facts and arrays that `restored` needs.

        Args:
            is_protected: whether a guarantee covers what was released.

        Raises:
            InputError: predictions of this method read the graph itself.
        """
        if self.reads_graph:
            raise InputError(
                f"method '{self.run_spec.config.run.method}' reads the graph itself for every "
                f"prediction, and a saved model never contains edges; keep the fitted model in "
                f"memory, or fit a method that predicts from releases, such as 'certified'"
            )
        covered = COVERED if is_protected else UNPROTECTED
        facts = {
            "for_whom": {key: text.format(releases=covered) for key, text in FOR_WHOM.items()},
            "config": self.run_spec.config.model_dump_json(),
            "sizes": asdict(self.run_spec.sizes),
            "num_val": self.run_spec.schedule.num_val,
            "noise_stds": list(self.run_spec.noise_plan.all_noise_stds),
            "stage": self.stage,
            "last_stage": self.last_stage,
            "is_new": self.is_new,
            "has_own_encoder": self.has_own_encoder,
            "roster": {each: list(getattr(self.roster, each)) for each in ("train", "val")},
            "ids": None if self.ids is None else self.ids.values.to_pylist(),
            "calibration": asdict(self.calibration),
        }
        arrays = {
            "features": self.features,
            "roster/label_posteriors": self.roster.label_posteriors,
            **with_prefix("trained", trained_arrays(self.data_side)),
            **with_prefix("decoder", arrays_of(self.label_side.module.state_dict())),
        }
        for number, release in enumerate(self.releases):
            arrays |= with_prefix(f"release/{number}", release)
        return facts, arrays


def restored(facts: Facts, arrays: Arrays, *, encoder: "MakeEncoder | None") -> TrainedModel:
    """Make a trained model from what `TrainedModel.stored` returned.

    Raises:
        InputError: it needs an encoder, or this version would compute something else.
    """
    if facts["has_own_encoder"] and encoder is None:
        raise InputError(
            "encoder: this model was trained with an encoder of your own, which is code and not "
            "stored; pass the same function again, as load(path, encoder=...)"
        )
    config = Config.model_validate_json(facts["config"])
    run_spec = make_run_spec(
        config, PublicSizes(**facts["sizes"]), num_val=facts["num_val"], num_test=0
    )
    if list(run_spec.noise_plan.all_noise_stds) != facts["noise_stds"]:
        raise InputError(
            f"this model was saved by vesper {facts['version']}, which planned its noise "
            f"differently; load it with that version, or fit again"
        )
    if facts["has_own_encoder"] and encoder is not None:
        from vesper.api.encoder import with_encoder

        run_spec = replace(run_spec, method=with_encoder(run_spec.method, encoder))
    features: NDArray[Any] = arrays["features"]
    releases = releases_of(arrays)
    roster = Roster(
        train=tuple(facts["roster"]["train"]),
        val=tuple(facts["roster"]["val"]),
        test=(),
        label_posteriors=arrays["roster/label_posteriors"],
    )
    ids = None if facts["ids"] is None else ids_of(facts["ids"])
    side = run_spec.method.make_representation(
        config,
        run_spec.sizes,
        noise_plan=run_spec.noise_plan,
        features=features,
        door=StoredDoor(releases),
    )
    InferenceParty(  # begins the stages, and loads everything into the representation
        side,
        ids or numbers_as_ids(run_spec.sizes.num_nodes),
        trained=without_prefix("trained", arrays),
        roster=roster,
        stage=facts["last_stage"],
        is_new=facts["is_new"],
    )
    side.select_stage(facts["stage"])
    decoder = run_spec.method.make_decoder(config, run_spec.sizes)
    load_weights(decoder.module, weights_of(without_prefix("decoder", arrays)))
    calibration = {name: tuple(values) for name, values in facts["calibration"].items()}
    return TrainedModel(
        run_spec=run_spec,
        data_side=side,
        label_side=decoder,
        stage=facts["stage"],
        last_stage=facts["last_stage"],
        roster=roster,
        features=features,
        ids=ids,
        calibration=Calibration(**calibration),
        releases=releases,
        reads_graph=False,
        has_own_encoder=facts["has_own_encoder"],
        is_new=facts["is_new"],
    )


def releases_of(arrays: Arrays) -> list[Arrays]:
    """Return the stored releases in order."""
    found = without_prefix("release", arrays)
    count = len({name.partition("/")[0] for name in found})
    return [without_prefix(str(number), found) for number in range(count)]


def numbers_as_ids(num_nodes: int) -> Ids:
    """Return node numbers as ids."""
    return Ids(pa.array(np.arange(num_nodes)))


def ids_of(values: Sequence[int | str]) -> Ids:
    """Return ids that were stored as JSON."""
    is_text = bool(values) and isinstance(values[0], str)
    return Ids(pa.array(values, type=pa.large_string() if is_text else pa.int64()))
