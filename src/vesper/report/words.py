"""The privacy section in plain words: what holds, what it means, what it does not cover."""

from html import escape

from vesper.method.settings import Config
from vesper.report.privacy import Privacy


def meaning_of(privacy: Privacy) -> list[str]:
    """Paragraphs, as HTML, that say what the guarantee is worth."""
    if privacy.plan == "edge-free":
        return [
            "The model was trained on node features alone. The graph was never opened, so no "
            "message to the label party depends on any edge."
        ]
    if privacy.plan != "certified":
        return [
            "Nothing is certified. Somebody who receives what this model sends may be able to "
            "tell which edges the graph has. Use it for comparison only, never with a graph that "
            "must stay private."
        ]
    share = f"{100 * privacy.best_guess:.1f} %"
    is_edge = privacy.unit == "edge"
    taken = "any one edge" if is_edge else "all edges of any one node"
    them, there = ("it", "the edge exists") if is_edge else ("them", "the node has these edges")
    noise_plan = (
        f"Take {taken}. The label party may know every other edge, every feature, every label, "
        "all settings, and which nodes were in which batch; it keeps everything it ever received. "
        f"Whatever it computes from that, an outcome that has probability <i>p</i> with {them} "
        f"has at most e<sup>{privacy.epsilon:g}</sup>&thinsp;<i>p</i> + {privacy.delta:g} without "
        f"{them}, and the other way round."
    )
    if not privacy.is_private:
        return [
            "Noise of this run was drawn from a seed, so that it can be repeated. Who knows the "
            "seed can subtract the noise, so <b>nothing that came out of it is protected</b>. Do "
            "not hand it to anybody who must not learn edges.",
            f"With noise from the operating system, the same training promises this. {noise_plan}",
        ]
    return [
        noise_plan,
        f"<b>As a bet:</b> if it was a coin toss for the label party whether {there}, its guess "
        f"after all of this is right with probability at most <b>{share}</b>. Blind guessing "
        "is right in 50 % of cases, reading the edge in 100 %.",
    ]


def not_covered(privacy: Privacy) -> list[str]:
    """Points, as HTML, that the guarantee does not cover."""
    if privacy.plan not in ("certified", "edge-free"):
        return []
    points = [
        "<b>Features and node ids.</b> They are not edges. A feature that was computed from edges "
        "(a degree, a count of payments) is outside the guarantee; leave it out.",
        "<b>What else is known of the graph:</b> copies, exports, other models on the same data.",
        "<b>The machines.</b> Who can read the data party's memory or disk reads the graph.",
    ]
    if privacy.plan == "certified":
        points.insert(
            0,
            "<b>More than one edge at a time.</b> For all <i>k</i> edges of a person together the "
            "promise is weaker: epsilon is <i>k</i> times as large, and delta grows with it."
            if privacy.unit == "edge"
            else "<b>More than one node at a time.</b> For <i>k</i> people together the promise is "
            "weaker: epsilon is <i>k</i> times as large, and delta grows with it.",
        )
        points.append(f"<b>Other fits.</b> The budget counts {escape(privacy.covers)}.")
    return points


RELEASE_DESCRIPTIONS = {
    "gin": "Sums over neighbours of messages of norm at most 1",
    "gcn": "Sums over neighbours of messages of norm at most 1, shortened by released degrees",
    "gcn-clamped": "Sums over neighbours of messages of norm at most 1, weighed by clamped degrees "
    "of both ends, and scaled to move as sums do",
    "mean": "Sums over neighbours of messages of norm at most 1, divided by noisy degrees "
    "afterwards",
    "gat": "Sums over neighbours of messages of norm at most 1, weighed by attention from 0 to 1",
    "max": "Coordinate-wise maxima over neighbours of messages of norm at most 1",
}


def release_description(config: Config) -> str:
    """Say what the certified plan makes of neighbours' messages before noise is added.

    >>> release_description(Config())
    'Sums over neighbours of messages of norm at most 1, exact in integers (gin)'
    """
    aggregator = config.privacy.aggregator
    if config.privacy.privacy_unit == "node":
        made = f"{RELEASE_DESCRIPTIONS[aggregator]}, each clipped to {config.privacy.max_degree**0.5:.4g}"
        return f"{made}, in whole numbers ({aggregator})"
    return f"{RELEASE_DESCRIPTIONS[aggregator]}, exact in integers ({aggregator})"


def labels_of(config: Config) -> str:
    """Say, as HTML, what the data party learns of labels: another promise, to the other party."""
    epsilon = config.privacy.label_epsilon
    if epsilon is not None:
        return (
            "Of each label of a training or validation node the data party gets one answer by "
            f"randomised response: <b>epsilon {epsilon:g}</b> for every label, delta 0. Losses, "
            "gradients and the choice of the model are made of these answers; labels of test "
            "nodes never cross. In a simulation answers come from the seed and protect nothing."
        )
    if config.run.task in ("regression", "ranking"):
        remedy = "Only labels that are classes can be protected, by <code>label_epsilon</code>."
    else:
        remedy = "<code>label_epsilon</code> would protect them."
    if config.run.label_messages:
        return (
            "Not protected: the data party is told the labels of training nodes "
            f"(<code>label_messages</code>). {remedy}"
        )
    return (
        "Not protected: gradients tell the data party much about the labels of training nodes. "
        f"{remedy}"
    )
