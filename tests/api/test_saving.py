"""A fitted model as one file: the same predictions, no pickle, no noise source, clear refusals."""

import copy
import io
import json
import math
import pickle
import stat
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
import pytest
from torch import nn

from vesper import InputError, Vesper, VesperRegressor

if TYPE_CHECKING:
    from tests.api.conftest import Communities

ALL = np.arange(600)


def facts_of(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as stored:
        facts: dict[str, Any] = json.loads(stored["facts"].tobytes())
    return facts


@pytest.fixture(scope="module")
def saved(simulated: Vesper, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulated.save(tmp_path_factory.mktemp("saved") / "model.npz")


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"aggregator": "gcn"},
        {"method": "mlp"},
        {"method": "gap"},
        {"method": "progap"},
        {"method": "edgerand"},
        {"epsilon": math.inf},
        {"settings": {"label_epsilon": 2.0}},
        {"settings": {"class_weights": "balanced"}},
        {"encoder": "gru", "settings": {"steps": 2}},
    ],
    ids=str,
)
def test_a_loaded_model_predicts_the_same_bit_for_bit(
    communities: "Communities", tmp_path: Path, parameters: dict[str, Any]
) -> None:
    settings = {"epochs": 2} | parameters.get("settings", {})
    given = {"seed": 0, "simulate_noise": True} | parameters
    model = communities.fit(**given | {"settings": settings})
    loaded = Vesper.load(model.save(tmp_path / "model.npz"))
    for ids in (ALL, [5, 3], []):
        assert np.array_equal(loaded.predict_proba(ids), model.predict_proba(ids))
    assert loaded.get_params() == model.get_params()
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.privacy_ == model.privacy_
    assert loaded.n_features_in_ == 4
    pages = [each.report(tmp_path / "page.html").read_text() for each in (model, loaded)]
    assert pages[0] == pages[1]
    again = loaded.save(tmp_path / "again.npz")
    assert np.array_equal(Vesper.load(again).predict_proba(ALL), model.predict_proba(ALL))


def test_a_regressor_is_saved_as_such(tmp_path: Path, saved: Path) -> None:
    numbers = np.arange(60) / 10
    edges = np.stack([np.arange(60), (np.arange(60) + 1) % 60])
    model = VesperRegressor(seed=0, settings={"epochs": 2, "width": 8})
    model.fit(edges, numbers[:, None], numbers, train=range(0, 60, 2))
    path = model.save(tmp_path / "model.npz")
    loaded = VesperRegressor.load(path)
    assert np.array_equal(loaded.predict(range(60)), model.predict(range(60)))
    assert loaded.score([1, 3, 5], numbers) == model.score([1, 3, 5], numbers)
    with pytest.raises(InputError, match=r"found a VesperRegressor; use VesperRegressor.load"):
        Vesper.load(path)
    with pytest.raises(InputError, match=r"found a Vesper; use Vesper.load"):
        VesperRegressor.load(saved)


def test_the_file_says_whose_eyes_its_parts_are_for(
    communities: "Communities", saved: Path, tmp_path: Path
) -> None:
    facts = facts_of(saved)
    prefixes = set(facts["for_whom"])
    with np.load(saved, allow_pickle=False) as stored:
        names = set(stored.files) - {"facts", "facts_digest", "distinct"}
    assert all(any(name.startswith(prefix) for prefix in prefixes) for name in names)
    assert "not protected" in facts["for_whom"]["release/"], "its noise was simulated"
    assert "may not leave" in facts["for_whom"]["features"]
    assert facts["privacy"]["simulated"] is True
    private = communities.fit(settings={"epochs": 1}).save(tmp_path / "private.npz")
    assert "covered by the guarantee" in facts_of(private)["for_whom"]["release/"]
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [private], "no draft is left"


def test_pickle_and_joblib_use_the_same_state(simulated: Vesper, tmp_path: Path) -> None:
    expected = simulated.predict_proba([4, 2])
    joblib.dump(simulated, tmp_path / "model.joblib")
    for copied in (
        pickle.loads(pickle.dumps(simulated)),
        joblib.load(tmp_path / "model.joblib"),
        copy.deepcopy(simulated),
    ):
        assert np.array_equal(copied.predict_proba([4, 2]), expected)
        assert copied.get_params() == simulated.get_params()
    unfitted = pickle.loads(pickle.dumps(Vesper(epsilon=2.0)))
    assert unfitted.epsilon == 2.0
    with pytest.raises(InputError, match="not trained yet"):
        unfitted.predict([0])


def test_a_method_that_reads_the_graph_cannot_be_saved(
    communities: "Communities", tmp_path: Path
) -> None:
    model = communities.fit(method="gin", settings={"epochs": 1})
    with pytest.raises(InputError, match="a saved model never contains edges"):
        model.save(tmp_path / "model.npz")
    with pytest.raises(InputError, match="a saved model never contains edges"):
        pickle.dumps(model)
    assert not list(tmp_path.iterdir())


def small_encoder(num_inputs: int, width: int) -> nn.Module:
    return nn.Linear(num_inputs, width)


def test_an_encoder_of_the_user_is_given_again(communities: "Communities", tmp_path: Path) -> None:
    model = communities.fit(encoder=small_encoder, settings={"epochs": 1})
    path = model.save(tmp_path / "model.npz")
    with pytest.raises(InputError, match=r"pass the same function again, as load\(path, encoder"):
        Vesper.load(path)
    loaded = Vesper.load(path, encoder=small_encoder)
    assert np.array_equal(loaded.predict_proba(ALL), model.predict_proba(ALL))
    assert np.array_equal(
        pickle.loads(pickle.dumps(model)).predict_proba(ALL), model.predict_proba(ALL)
    )

    def other(num_inputs: int, width: int) -> nn.Module:
        return nn.Sequential(nn.Linear(num_inputs, width), nn.ReLU())

    with pytest.raises(InputError, match="saved weights: expected"):
        Vesper.load(path, encoder=other)


def test_unusable_paths_are_refused(simulated: Vesper, tmp_path: Path) -> None:
    nowhere: Any = None
    with pytest.raises(InputError, match="path: expected the path of a file, got NoneType"):
        simulated.save(nowhere)
    with pytest.raises(InputError, match="got a folder; add a file name"):
        simulated.save(tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        simulated.save(tmp_path / "no" / "model.npz")
    with pytest.raises(InputError, match="expected the file of a saved model, got 'No such file"):
        Vesper.load(tmp_path / "model.npz")
    with pytest.raises(InputError, match="not trained yet"):
        Vesper().save(tmp_path / "model.npz")


def test_files_that_are_not_models_are_refused(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(b"not a model")
    with pytest.raises(InputError, match="expected a model saved by vesper, found something else"):
        Vesper.load(path)
    np.savez(path, weights=np.zeros(3))
    with pytest.raises(InputError, match="is damaged"):
        Vesper.load(path)
    content = saved.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="is damaged"):
        Vesper.load(path)


def test_every_flipped_bit_is_found_or_harmless(simulated: Vesper, saved: Path) -> None:
    content, rng = saved.read_bytes(), np.random.default_rng(0)
    expected = simulated.predict_proba([1, 2])
    state, refusals = simulated.__getstate__(), set()
    ends = [*range(200), *range(len(content) - 600, len(content))]
    for position in [*rng.integers(len(content), size=150), *rng.choice(ends, size=150)]:
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(rng.integers(8))
        model = Vesper()
        try:
            model.__setstate__({**state, "model": bytes(damaged)})
        except InputError as error:
            refusals.add("damaged" in str(error) or "found something else" in str(error))
        else:
            assert np.array_equal(model.predict_proba([1, 2]), expected)
    assert refusals == {True}


def test_another_format_is_refused_by_its_number(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulated: Vesper
) -> None:
    monkeypatch.setattr("vesper.api.model_file.FORMAT", 2)
    path = simulated.save(tmp_path / "model.npz")
    monkeypatch.undo()
    with pytest.raises(InputError, match="expected format 1, found 2, written by vesper"):
        Vesper.load(path)


def test_nothing_in_the_file_is_pickled(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        for name in archive.namelist():
            np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
