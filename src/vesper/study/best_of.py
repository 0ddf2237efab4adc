"""Best of several configurations, as in the paper's tables.

    best(data set, curve, epsilon) = the configuration with the highest mean test metric

The choice is optimistic, as it uses the test metric; the paper's main table is made this way from
its full one, and the degrees that its tables use are the best of its ablations.
"""

from collections.abc import Mapping
from dataclasses import replace

from vesper.study.cell import Key, Score


def keys_with_best(
    keys: tuple[Key, ...], configurations: Mapping[Key, list[str]]
) -> tuple[Key, ...]:
    """Insert the keys of best scores before those of their configurations."""
    best_of = {
        (dataset, member, epsilon): (dataset, best, epsilon)
        for (dataset, best, epsilon), members in configurations.items()
        for member in members
    }
    curves: dict[tuple[str, str], dict[Key, None]] = {}
    for key in keys:
        if key in best_of:
            curves.setdefault(best_of[key][:2], {})[best_of[key]] = None
    ordered: dict[Key, None] = {}
    for key in keys:
        if key in best_of:
            ordered.update(curves[best_of[key][:2]])
        ordered[key] = None
    return tuple(ordered)


def best_scores(
    scores: Mapping[Key, Score], configurations: Mapping[Key, list[str]]
) -> dict[Key, Score]:
    """Return the highest mean at each epsilon, with the name of its configuration."""
    best: dict[Key, Score] = {}
    for (dataset, name, epsilon), members in configurations.items():
        measured = {
            member: scores[dataset, member, epsilon]
            for member in members
            if (dataset, member, epsilon) in scores
        }
        if measured:
            member = max(measured, key=lambda each: measured[each].mean)
            short = member.removeprefix(f"{name}: ")
            best[dataset, name, epsilon] = replace(measured[member], configuration=short)
    return best
