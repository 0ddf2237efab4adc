"""Registry records: the fields of the registry, epsilon only where it is guaranteed."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from vesper.report.contents import Contents
from vesper.report.registry_record import Publisher, registry_record
from vesper.session.config import load_config

Make = Callable[..., Contents]

NOBODY = Publisher()
FIELDS = {  # of the records in the registry's repository
    "basic": "name data_curators intended_use data_product_type data_product_region description "
    "publication_date data_product_sector",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters "
    "privacy_parameters_details",
    "deployment_model": "model_name model_name_details actors release_type release_type_details "
    "data_source_type data_source_type_details access_type access_type_details",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "evidence_sources registry_authors",
}


def record_of(contents: Contents, publisher: Publisher = NOBODY) -> dict[str, Any]:
    return registry_record(contents.privacy, contents.config, publisher)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


def test_fields_are_those_of_the_registry(contents: Make) -> None:
    record = record_of(contents())
    assert set(record) == {"url_slug", "status", "tier", "deployment"}
    assert {name: " ".join(part) for name, part in record["deployment"].items()} == FIELDS


def test_a_certified_run_states_its_guarantee(contents: Make) -> None:
    deployment = record_of(contents())["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Approximate DP"
    loss = deployment["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 4.0, "delta": 1e-6}
    assert "right with probability at most 0.6600" in loss["privacy_parameters_details"]
    assert "Gaussian DP" in deployment["accounting"]["composition"]
    assert "2.4, 2.4" in deployment["implementation"]["mechanisms"]


def test_the_mechanism_names_the_aggregator(contents: Make) -> None:
    sums = record_of(contents())["deployment"]["implementation"]["mechanisms"]
    assert sums.startswith(
        "Sums of neighbours' messages, each of norm at most 1; exact in integers"
    )
    config = load_config(None, {"aggregator": "max"})
    maxima = record_of(contents(config=config))["deployment"]["implementation"]["mechanisms"]
    assert maxima.startswith("Coordinate-wise maxima of neighbours' messages")


@pytest.mark.parametrize(
    ("plan", "secure", "words"),
    [
        ("certified", False, "the noise was simulated, from a seed"),
        ("paper", True, "It is a claim, not a guarantee"),
        ("none", True, "Nothing is guaranteed"),
    ],
)
def test_what_is_not_guaranteed_has_no_epsilon(
    contents: Make, plan: str, secure: bool, words: str
) -> None:
    deployment = record_of(contents(plan, secure=secure))["deployment"]
    assert deployment["dp_variant"]["variant_name"] is None
    loss = deployment["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": None, "delta": None}
    assert words in loss["privacy_parameters_details"]


def test_a_claimed_plan_states_nothing_that_needs_a_proof(contents: Make) -> None:
    deployment = record_of(contents("paper"))["deployment"]
    assert deployment["accounting"]["post_processing"] is None
    assert "epsilon 2 is claimed" in deployment["privacy_loss"]["privacy_parameters_details"]
    assert not any("Gaussian DP" in text or "integers" in text for text in texts(deployment))


def test_no_edge_is_epsilon_zero(contents: Make) -> None:
    deployment = record_of(contents("edge-free"))["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.0, "delta": 0.0}


def test_what_only_people_know_comes_from_them(contents: Make) -> None:
    basic = record_of(contents())["deployment"]["basic"]
    unknown = ("name", "data_curators", "intended_use", "data_product_region", "publication_date")
    assert all(basic[field] is None for field in unknown)
    publisher = Publisher(name="Risk", curator="Bank", intended_use="fraud", author="A. Person")
    deployment = record_of(contents(), publisher)["deployment"]
    assert deployment["basic"]["name"] == "Risk"
    assert deployment["basic"]["data_curators"][0]["data_curator_name"] == "Bank"
    assert deployment["administrative"]["registry_authors"] == ["A. Person"]
