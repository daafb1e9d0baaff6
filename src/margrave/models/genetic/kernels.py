"""Compiled loops of the genetic search: what a child's loss is, told from its parent's in a few look-ups.

A record is a choice for each site. ``gains[k]`` is what one more record in cell k would add to the loss; a record that
comes or goes changes it by ``turns[k] = 2 · weight_k · step²`` up or down. A record that comes adds the sum of the
gains of its cells to the loss, and one that goes takes it off, once it has gone.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LEAST = 1e-9
"""Improvements below this are rounding."""


@njit(cache=True, nogil=True)
def _random(state):  # type: ignore[no-untyped-def]
    """The next number of SplitMix64: 53 random bits as a fraction."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) / 9007199254740992.0


@njit(cache=True, nogil=True)
def _below(state, count):  # type: ignore[no-untyped-def]
    """A whole number from 0 to ``count`` − 1."""
    return min(int(_random(state) * count), count - 1)


@njit(cache=True, nogil=True)
def _cell(row, layout, term):  # type: ignore[no-untyped-def]
    """The cell of a term that a record is in."""
    cell = layout.bases[term]
    for p in range(layout.part_starts[term], layout.part_starts[term + 1]):
        cell += layout.tables[layout.part_tables[p] + row[layout.part_sites[p]]]
    return cell


@njit(cache=True, nogil=True)
def tally(rows, layout, counts):  # type: ignore[no-untyped-def]
    """How many records are in every cell."""
    for i in range(len(rows)):
        for term in range(len(layout.bases)):
            counts[_cell(rows[i], layout, term)] += 1


@njit(cache=True, nogil=True)
def _replace(row, site, choice, layout, gains, turns):  # type: ignore[no-untyped-def]
    """Give a record another choice of one site; what the loss changes by."""
    change = 0.0
    for z in range(layout.site_starts[site], layout.site_starts[site + 1]):
        own = layout.site_tables[z]
        old = _cell(row, layout, layout.site_terms[z])
        new = old - layout.tables[own + row[site]] + layout.tables[own + choice]
        gains[old] -= turns[old]
        change += gains[new] - gains[old]
        gains[new] += turns[new]
    row[site] = choice
    return change


@njit(cache=True, nogil=True)
def _mutate(row, site, layout, gains, turns, state, rests, scores, tried):  # type: ignore[no-untyped-def]
    """Give a record the best choice of a site, if it lowers the loss; by how much.

    All choices are children of the record; where there are more than ``len(tried)``, so many of them at random.
    """
    old, first, last = row[site], layout.site_starts[site], layout.site_starts[site + 1]
    if first == last or layout.sizes[site] < 2:
        return 0.0
    now = 0.0
    for z in range(first, last):
        own = layout.site_tables[z]
        rest = _cell(row, layout, layout.site_terms[z]) - layout.tables[own + old]
        rests[z - first] = rest
        cell = rest + layout.tables[own + old]
        gains[cell] -= turns[cell]
        now += gains[cell]
    children = layout.sizes[site]
    whole = children <= len(tried)
    if not whole:
        children = len(tried)
        for c in range(children):
            tried[c] = _below(state, layout.sizes[site])
    scores[:children] = 0.0
    for z in range(first, last):
        rest, own = rests[z - first], layout.site_tables[z]
        if whole:
            for c in range(children):
                scores[c] += gains[rest + layout.tables[own + c]]
        else:
            for c in range(children):
                scores[c] += gains[rest + layout.tables[own + tried[c]]]
    best = 0
    for c in range(1, children):
        if scores[c] < scores[best]:
            best = c
    change = scores[best] - now
    if change < -LEAST:
        row[site] = best if whole else tried[best]
    else:
        change = 0.0
    for z in range(first, last):
        cell = rests[z - first] + layout.tables[layout.site_tables[z] + row[site]]
        gains[cell] += turns[cell]
    return change


@njit(cache=True, nogil=True)
def _cross(one, other, site, layout, gains, turns):  # type: ignore[no-untyped-def]
    """Let two records exchange their choices of a site, if that lowers the loss; by how much."""
    old, new = one[site], other[site]
    if old == new:
        return 0.0
    change = _replace(one, site, new, layout, gains, turns) + _replace(other, site, old, layout, gains, turns)
    if change < -LEAST:
        return change
    _replace(one, site, old, layout, gains, turns)
    _replace(other, site, new, layout, gains, turns)
    return 0.0


@njit(cache=True, nogil=True)
def _copy(row, other, layout, gains, turns, before):  # type: ignore[no-untyped-def]
    """Make a record a copy of another, if that lowers the loss; by how much."""
    before[:] = row
    change = 0.0
    for site in range(len(row)):
        if row[site] != other[site]:
            change += _replace(row, site, other[site], layout, gains, turns)
    if change < -LEAST:
        return change
    for site in range(len(row)):
        if row[site] != before[site]:
            _replace(row, site, before[site], layout, gains, turns)
    return 0.0


@njit(cache=True, nogil=True)
def generation(rows, order, crossover, layout, gains, turns, state, tried):  # type: ignore[no-untyped-def]
    """Every record once, in this order: a mutation or a crossover, taken at once if it lowers the loss; by how much."""
    sites = rows.shape[1]
    rests = np.empty(len(layout.site_terms), np.int64)
    scores, before = np.empty(len(tried)), np.empty(sites, rows.dtype)
    change = 0.0
    for i in order:
        site, kind = _below(state, sites), _random(state)
        if kind < crossover:
            other = _below(state, len(rows))
            if kind < crossover / 2:
                change += _cross(rows[i], rows[other], site, layout, gains, turns)
            else:
                change += _copy(rows[i], rows[other], layout, gains, turns, before)
        else:
            change += _mutate(rows[i], site, layout, gains, turns, state, rests, scores, tried)
    return change


@njit(cache=True, nogil=True)
def _difference(row, site, choice, layout, gains, turns):  # type: ignore[no-untyped-def]
    """What the loss would change by if a record had another choice of one site."""
    change = 0.0
    for z in range(layout.site_starts[site], layout.site_starts[site + 1]):
        own = layout.site_tables[z]
        old = _cell(row, layout, layout.site_terms[z])
        new = old - layout.tables[own + row[site]] + layout.tables[own + choice]
        if new != old:
            change += gains[new] - gains[old] + turns[old]
    return change


@njit(cache=True, nogil=True)
def _brood(rows, gains, turns, losses, slots, mutations, crossovers, layout, state, loss, child):  # type: ignore[no-untyped-def]
    """The best of a generation's children: their losses, best first, and each as (parent, record, site, choice)."""
    elite, (_, records, sites) = len(slots), rows.shape
    loss[:] = np.inf
    for c in range(mutations + crossovers):
        parent, record, site = _below(state, elite), _below(state, records), _below(state, sites)
        if c < mutations:
            choice = _below(state, layout.sizes[site])
        else:
            other = (parent + 1 + _below(state, max(1, elite - 1))) % elite
            choice = rows[slots[other], _below(state, records), site]
        at = slots[parent]
        value = losses[parent] + _difference(rows[at, record], site, choice, layout, gains[at], turns)
        place = elite
        while place > 0 and value < loss[place - 1]:
            place -= 1
        if place < elite:
            loss[place + 1 :] = loss[place:-1].copy()
            child[place + 1 :] = child[place:-1].copy()
            loss[place] = value
            child[place, 0], child[place, 1], child[place, 2], child[place, 3] = parent, record, site, choice


@njit(cache=True, nogil=True)
def evolve(rows, gains, turns, losses, slots, generations, mutations, crossovers, layout, state):  # type: ignore[no-untyped-def]
    """Generations of an elite: of it and the children, those of the least loss are the next elite.

    ``rows`` and ``gains`` have two slots for each of the elite; ``slots`` are those in use. A child takes its parent's
    slot if the parent is needed no more, else a copy.
    """
    elite = len(slots)
    loss, child = np.empty(elite), np.empty((elite, 4), np.int64)
    uses, taken = np.empty(elite, np.int64), np.empty(2 * elite, np.bool_)
    next_losses, next_slots = np.empty(elite), np.empty(elite, np.int64)
    for _ in range(generations):
        _brood(rows, gains, turns, losses, slots, mutations, crossovers, layout, state, loss, child)
        uses[:] = 0
        born, kept = 0, 0
        for e in range(elite):  # both lists are in order: merge their beginnings
            if loss[born] < losses[kept] - LEAST:
                next_losses[e], next_slots[e] = loss[born], -1 - born
                uses[child[born, 0]] += 1
                born += 1
            else:
                next_losses[e], next_slots[e] = losses[kept], slots[kept]
                uses[kept] += 1
                kept += 1
        if born == 0:
            continue
        taken[:] = False
        taken[slots] = True
        for e in range(elite):
            if next_slots[e] >= 0:
                continue
            parent, record, site, choice = child[-1 - next_slots[e]]
            at = slots[parent]
            if uses[parent] > 1:
                uses[parent] -= 1
                at = np.argmin(taken)
                taken[at] = True
                rows[at], gains[at] = rows[slots[parent]], gains[slots[parent]]
            next_slots[e] = at
            _replace(rows[at, record], site, choice, layout, gains[at], turns)
        losses[:], slots[:] = next_losses, next_slots
