"""A shared label moves a posterior towards its class, as far as it is reliable."""

import pytest
import torch

from vesper.model.message_rows import bayes_update


@pytest.mark.parametrize("classes", [2, 5])
def test_an_exact_label_is_believed_and_a_flat_one_changes_nothing(classes: int) -> None:
    posteriors = torch.rand(50, classes, generator=torch.Generator().manual_seed(0)).softmax(dim=1)
    labels = torch.arange(50) % classes
    one_hot = torch.nn.functional.one_hot(labels, classes).float()
    assert torch.equal(bayes_update(posteriors, one_hot), one_hot)
    assert torch.allclose(bayes_update(posteriors, torch.full((50, classes), 0.3)), posteriors)


def test_a_response_leaves_doubt_and_raises_its_class() -> None:
    posteriors = torch.tensor([[0.2, 0.3, 0.5], [0.98, 0.01, 0.01]])
    label_posteriors = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    after = bayes_update(posteriors, label_posteriors)
    assert torch.allclose(after.sum(dim=1), torch.ones(2))
    assert after[0, 0] > posteriors[0, 0]
    assert after[1, 1] > posteriors[1, 1]
    assert after[1].argmax() == 0, "a doubtful response does not undo what is almost certain"


def test_a_label_that_was_considered_impossible_is_believed() -> None:
    after = bayes_update(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]))
    assert after.tolist() == [[0.0, 1.0]]
