"""Graphs whose labelled nodes are connected through other nodes only.

`RELAY_KINDS` was looked at when relays were built (docs/decisions/0019), and so was "people who
share devices". `HELD_OUT_RELAY_KINDS` was specified before any of it was run, and nothing was
chosen by it. Nodes without a label have label -1: they are in neither training nor test.
"""

import numpy as np
from benchmarks.later_graphs import GraphArrays
from benchmarks.unseen_graphs import Ints, Kind, Rng, blocks, hints

NO_LABEL = -1


def unlabelled(count: int) -> Ints:
    """Labels of nodes without a label."""
    return np.full(count, NO_LABEL)


def merchants(rng: Rng, n: int) -> GraphArrays:
    """Three in four visits of users are to merchants of their kind; 1 node in 21 is a merchant."""
    shops = n // 21
    users = n - shops
    kinds, labels = rng.integers(0, 2, shops), rng.integers(0, 2, users)
    visits = rng.integers(0, shops, (users, 6))
    for kind in (0, 1):
        own = (labels == kind)[:, None] & (rng.random((users, 6)) < 0.75)
        visits[own] = rng.choice(np.flatnonzero(kinds == kind), int(own.sum()))
    edges = np.column_stack([np.repeat(np.arange(users), 6), users + visits.ravel()])
    features = np.concatenate([hints(rng, labels, width=6, size=0.3), rng.normal(size=(shops, 6))])
    return np.concatenate([labels, unlabelled(shops)]), edges, features


def relays(rng: Rng, n: int) -> GraphArrays:
    """Four classes; labelled nodes meet in 4 n / 9 relays of eight members, mostly of a class."""
    labelled = 5 * n // 9
    relays_of = n - labelled
    labels = rng.integers(0, 4, labelled)
    members = rng.integers(0, labelled, (relays_of, 8))
    kinds = rng.integers(0, 4, relays_of)
    for kind in range(4):
        own = (kinds == kind)[:, None] & (rng.random((relays_of, 8)) < 0.85)
        members[own] = rng.choice(np.flatnonzero(labels == kind), int(own.sum()))
    edges = np.column_stack([members.ravel(), labelled + np.repeat(np.arange(relays_of), 8)])
    features = rng.normal(size=(n, 6))
    features[:labelled] = hints(rng, labels, width=6, size=0.3)
    return np.concatenate([labels, unlabelled(relays_of)]), edges, features


def bad_shops(rng: Rng, n: int) -> GraphArrays:
    """One user in 25 is fraudulent and often pays at bad shops; sizes of shops vary widely."""
    shops = n // 21
    users = n - shops
    is_bad = rng.random(shops) < 0.1
    sizes = rng.pareto(1.5, shops) + 1
    labels = (rng.random(users) < 0.04).astype(np.int64)
    payers = np.repeat(np.arange(users), rng.poisson(5, users) + 1)
    goes_bad = rng.random(len(payers)) < np.where(labels[payers], 0.4, 0.03)
    paid = np.empty(len(payers), dtype=np.int64)
    for bad in (False, True):
        chances = sizes * (is_bad == bad)
        paid[goes_bad == bad] = rng.choice(
            shops, int((goes_bad == bad).sum()), p=chances / chances.sum()
        )
    features = np.concatenate([hints(rng, labels, width=6, size=0.3), rng.normal(size=(shops, 6))])
    return (
        np.concatenate([labels, unlabelled(shops)]),
        np.column_stack([payers, users + paid]),
        features,
    )


def co_authors(rng: Rng, n: int) -> GraphArrays:
    """Six fields; papers, without features, have two to six authors, mostly of one field."""
    authors = n // 3
    papers = n - authors
    fields, labels = rng.integers(0, 6, papers), rng.integers(0, 6, authors)
    of = np.repeat(np.arange(papers), rng.integers(2, 7, papers))
    wrote = rng.integers(0, authors, len(of))
    for field in range(6):
        own = (fields[of] == field) & (rng.random(len(of)) < 0.8)
        wrote[own] = rng.choice(np.flatnonzero(labels == field), int(own.sum()))
    features = np.zeros((n, 12))
    features[:authors] = hints(rng, labels, width=12, size=0.2)
    return (
        np.concatenate([labels, unlabelled(papers)]),
        np.column_stack([wrote, authors + of]),
        features,
    )


def shared_cards(rng: Rng, n: int) -> GraphArrays:
    """Rings of eight, one account in 30, share six cards; other accounts share one in pairs."""
    cards = n // 2
    accounts = n - cards
    labels = np.zeros(accounts, dtype=np.int64)
    rings = rng.permutation(accounts)[: accounts // 240 * 8].reshape(-1, 8)
    labels[rings] = 1
    edges = [np.column_stack([np.arange(accounts), accounts + rng.integers(0, cards, accounts)])]
    edges += [np.column_stack([np.arange(accounts), accounts + np.arange(accounts) // 2 % cards])]
    for ring in rings:
        theirs = accounts + rng.integers(0, cards, 6)
        edges.append(np.column_stack([np.repeat(ring, 3), rng.choice(theirs, 24)]))
    features = np.concatenate([hints(rng, labels, width=8, size=0.4), rng.normal(size=(cards, 8))])
    return np.concatenate([labels, unlabelled(cards)]), np.concatenate(edges), features


def direct_and_relay(rng: Rng, n: int) -> GraphArrays:
    """Half of the information is in neighbours of the same class, half in clubs of thirty."""
    clubs = n // 30
    people = n - clubs
    labels, direct = blocks(rng, people, classes=3, degree=5, alike=0.5)
    kinds = rng.integers(0, 3, clubs)
    joined = rng.integers(0, clubs, (people, 4))
    for kind in range(3):
        own = (labels == kind)[:, None] & (rng.random((people, 4)) < 0.7)
        joined[own] = rng.choice(np.flatnonzero(kinds == kind), int(own.sum()))
    through = np.column_stack([np.repeat(np.arange(people), 4), people + joined.ravel()])
    features = rng.normal(size=(n, 8))
    features[:people] = hints(rng, labels, width=8, size=0.2)
    return np.concatenate([labels, unlabelled(clubs)]), np.concatenate([direct, through]), features


RELAY_KINDS: dict[str, tuple[Kind, int, float]] = {
    "users and merchants": (merchants, 8_400, 0.5),
    "relays": (relays, 9_000, 0.5),
    "bad shops": (bad_shops, 12_600, 0.5),
    "co-authors": (co_authors, 12_000, 0.5),
}
HELD_OUT_RELAY_KINDS: dict[str, tuple[Kind, int, float]] = {
    "cards that rings share": (shared_cards, 24_000, 0.5),
    "direct and through clubs": (direct_and_relay, 6_000, 0.5),
}
"""Same format as `unseen_graphs.KINDS`."""
