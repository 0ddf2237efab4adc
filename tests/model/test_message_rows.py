import pytest
import torch

from vesper.mechanism.aggregations.grid import to_grid
from vesper.model.message_rows import (
    AGREEMENT,
    attention_keys,
    class_messages,
    damp_by_degree,
    mean_from_sums,
    positive_part,
    projection_rows,
    sum_features,
    with_degree,
)


@pytest.mark.parametrize("degree_share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("spread", [0.0, 1.0, 50.0])
def test_messages_fit_the_grid_whatever_the_beliefs(degree_share: float, spread: float) -> None:
    logits = spread * torch.randn(200, 3, generator=torch.Generator().manual_seed(1))
    messages = class_messages(logits.softmax(dim=1), degree_share=degree_share)
    assert messages.shape == (200, 4)
    assert messages.norm(dim=1).max() <= 1 + 1e-5
    assert torch.allclose(messages[:, 0], torch.tensor(degree_share))
    to_grid(messages.numpy())


def test_equal_beliefs_contribute_only_the_degree() -> None:
    messages = class_messages(torch.full((4, 3), 1 / 3), degree_share=0.3)
    assert messages[:, 1:].abs().max() == 0


@pytest.mark.parametrize("length", [0.0, 0.5, 3.0])
def test_projections_fit_the_grid_and_keep_their_proportions_up_to_a_length(length: float) -> None:
    projections = torch.randn(200, 3, generator=torch.Generator().manual_seed(3))
    projections[0] = 0
    rows = projection_rows(projections, length=torch.tensor(length))
    to_grid(with_degree(rows, degree_share=0.4).numpy())
    sizes = projections.norm(dim=1)
    assert torch.allclose(rows.norm(dim=1)[1:], (sizes / sizes.clamp(min=length))[1:])
    assert rows[0].abs().max() == 0


def test_sum_features_have_size_and_direction() -> None:
    released = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    features = sum_features(released, torch.tensor([3.0, 2.0]))
    assert torch.allclose(features[0], torch.tensor([1.0, 2.0, 1.2, 1.6]))
    assert features[1].abs().max() == 0


def test_damping_shortens_hubs_and_lengthens_no_message() -> None:
    messages = torch.ones(5, 2) / 2**0.5
    damped = damp_by_degree(messages, torch.tensor([-3.0, 0.0, 3.0, 3.0, 99.0]))
    lengths = damped.norm(dim=1)
    assert torch.allclose(lengths, torch.tensor([1.0, 1.0, 1.0, 1.0, 0.2]))


def test_a_given_centre_and_median_replace_those_of_the_nodes() -> None:
    beliefs = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    default = class_messages(beliefs, degree_share=0.3, centre=beliefs.mean(dim=0))
    assert torch.equal(default, class_messages(beliefs, degree_share=0.3))
    single = class_messages(beliefs[:1], degree_share=0.3, centre=beliefs.mean(dim=0))
    assert torch.allclose(single, default[:1])
    degrees = torch.tensor([0.0, 3.0, 8.0])
    assert torch.equal(
        damp_by_degree(default, degrees, median=degrees.median()), damp_by_degree(default, degrees)
    )
    assert torch.equal(damp_by_degree(default, degrees, median=torch.tensor(99.0)), default)
    assert (
        damp_by_degree(default, degrees, median=torch.tensor(-5.0)).norm(dim=1) <= 1 + 1e-6
    ).all()


@pytest.mark.parametrize("spread", [0.0, 1.0, 50.0])
def test_keys_fit_the_grid_whatever_the_beliefs(spread: float) -> None:
    logits = spread * torch.randn(200, 3, generator=torch.Generator().manual_seed(2))
    keys = attention_keys(logits.softmax(dim=1), centre=torch.tensor([0.2, 0.3, 0.5]))
    to_grid(keys.numpy())
    assert torch.allclose(keys.norm(dim=1), torch.ones(200), atol=1e-5)


def test_nodes_that_lean_the_same_way_have_the_largest_weight() -> None:
    centre = torch.tensor([0.5, 0.5])
    keys = attention_keys(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.75, 0.25]]), centre=centre)
    scores = keys @ keys.T
    assert torch.allclose(scores.diagonal(), torch.ones(3))
    assert scores[0, 2] == pytest.approx(1.0)
    assert scores[0, 1] == pytest.approx(1 - 2 * AGREEMENT, abs=1e-6)


def test_negative_entries_are_dropped_and_the_rest_has_norm_1() -> None:
    rows = positive_part(torch.tensor([[0.6, -0.8], [-1.0, 0.0], [0.3, 0.4]]))
    assert torch.allclose(rows, torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.6, 0.8]]))


def test_a_mean_is_the_sum_over_the_degree_unless_noise_exceeds_it() -> None:
    released = torch.tensor([[5.0, 2.0], [0.25, 1.0], [-3.0, 1.0]])
    clear = mean_from_sums(released, degree_share=0.5, noise_std=0.0)
    assert torch.allclose(clear, released / torch.tensor([[10.0], [1.0], [1.0]]))
    noisy = mean_from_sums(released, degree_share=0.5, noise_std=4.0)
    assert torch.allclose(noisy, released / torch.tensor([[10.0], [8.0], [8.0]]))
