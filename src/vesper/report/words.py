"""Plain words for the privacy section: what holds, what it means, what it does not cover."""

from html import escape

from vesper.method.settings import Config
from vesper.report.privacy import Privacy


def meaning_of(privacy: Privacy) -> list[str]:
    """Explain what the guarantee is worth: paragraphs, as HTML."""
    if privacy.kind == "edge-free":
        return [
            "The model was trained on node features alone. The graph was never opened, so nothing "
            "that the label party received depends on any edge."
        ]
    if privacy.kind != "certified":
        return [
            "Nothing is certified. Anyone who receives what this model sends may be able to infer "
            "which edges the graph has. Use it only for comparison, never with a graph that must "
            "stay private."
        ]
    share = f"{100 * privacy.best_guess:.1f} %"
    is_edge = privacy.unit == "edge"
    which = "any one edge" if is_edge else "all edges of any one node"
    them, they_exist = (
        ("it", "the edge exists") if is_edge else ("them", "the node has these edges")
    )
    guarantee = (
        f"Consider {which}. The label party may know every other edge, every feature, every "
        "label, all settings, and which nodes were in which batch, and it may keep everything it "
        "ever received. Whatever it computes from all this, an outcome that has probability "
        f"<i>p</i> with {them} has probability at most e<sup>{privacy.epsilon:g}</sup>&thinsp;"
        f"<i>p</i> + {privacy.delta:g} without {them}, and vice versa."
    )
    if not privacy.is_private:
        return [
            "The noise of this run was drawn from a seed so that the run can be repeated. Anyone "
            "who knows the seed can subtract the noise, so <b>nothing that this run produced is "
            "protected</b>. Do not give its output to anyone who must not learn about edges.",
            f"With noise from the operating system, the same training guarantees the following. "
            f"{guarantee}",
        ]
    return [
        guarantee,
        f"<b>As a bet:</b> suppose that a fair coin decides whether {they_exist}. After "
        f"everything it received, the label party guesses right with probability at most "
        f"<b>{share}</b>. A blind guess is right in 50 % of cases; reading the graph itself, in "
        "100 %.",
        *([UPPER_BOUND] if privacy.is_upper_bound else []),
    ]


UPPER_BOUND = (
    "This page knows the agreed plan, and not the data party's ledger. If the data party had spent "
    "some of its budget before (on a degree histogram, say), it added more noise than planned. So "
    "the noise stated here is the least, and the probability the largest, that the plan allows; "
    "the data party's page has the noise as charged, and a probability that is the same or smaller."
)
"""Why the numbers of the label party's page may differ from those of the data party's."""


def not_covered(privacy: Privacy) -> list[str]:
    """List what the guarantee does not cover: points, as HTML."""
    if privacy.kind not in ("certified", "edge-free"):
        return []
    points = [
        "<b>Features and node ids.</b> They are not edges. A feature that was computed from edges "
        "(a degree, a count of payments) is outside the guarantee; do not use such features.",
        "<b>Other sources about the graph:</b> copies, extracts, and other models that were "
        "trained on the same data.",
        "<b>The machines.</b> Anyone who can read the data party's memory or disk can read the "
        "graph.",
    ]
    if privacy.kind == "certified":
        points.insert(
            0,
            "<b>More than one edge at a time.</b> For all <i>k</i> edges of a person together the "
            "guarantee is weaker: epsilon is <i>k</i> times as large, and delta grows as well."
            if privacy.unit == "edge"
            else "<b>More than one node at a time.</b> For <i>k</i> people together the guarantee "
            "is weaker: epsilon is <i>k</i> times as large, and delta grows as well.",
        )
        points.append(f"<b>Other training runs.</b> The budget covers {escape(privacy.covers)}.")
    return points


RELEASE_DESCRIPTIONS = {
    "gin": "Sums of neighbours' messages, each of norm at most 1",
    "gcn": "Sums of neighbours' messages, each of norm at most 1 and scaled down by released "
    "degrees",
    "gcn-clamped": "Sums of neighbours' messages, each of norm at most 1, weighted by the clamped "
    "degrees of both ends and scaled to the sensitivity of plain sums",
    "mean": "Sums of neighbours' messages, each of norm at most 1, divided by noisy degrees "
    "afterwards",
    "gat": "Sums of neighbours' messages, each of norm at most 1, weighted by attention from 0 to "
    "1",
    "max": "Coordinate-wise maxima of neighbours' messages, each of norm at most 1",
}
"""What the certified plan computes from edges, by aggregator."""


def release_description(config: Config) -> str:
    """Describe what the certified plan computes from neighbours' messages before it adds noise.

    >>> release_description(Config())
    "Sums of neighbours' messages, each of norm at most 1; exact in integers (gin)"
    """
    aggregator = config.privacy.aggregator
    description = RELEASE_DESCRIPTIONS[aggregator]
    if config.privacy.privacy_unit == "node":
        row_norm = config.privacy.max_degree**0.5
        return f"{description}; clipped to norm {row_norm:.4g}, in integers ({aggregator})"
    return f"{description}; exact in integers ({aggregator})"


def labels_of(config: Config) -> str:
    """Describe, as HTML, what the data party learns about labels: a separate guarantee."""
    epsilon = config.privacy.label_epsilon
    if epsilon is not None:
        return (
            "For each label of a training or validation node, the data party receives one "
            f"randomised response: <b>epsilon {epsilon:g}</b> per label, delta 0. Losses, "
            "gradients and the choice of the model are computed from these responses; labels of "
            "test nodes are never sent. In a simulation the responses come from the seed and "
            "protect nothing."
        )
    if config.run.task in ("regression", "ranking"):
        remedy = "Only class labels can be protected, with <code>label_epsilon</code>."
    else:
        remedy = "Set <code>label_epsilon</code> to protect them."
    if config.run.label_messages:
        return (
            "Not protected: the data party learns the labels of training nodes "
            f"(<code>label_messages</code>). {remedy}"
        )
    return (
        "Not protected: gradients reveal much about the labels of training nodes to the data "
        f"party. {remedy}"
    )
