"""Compiled loops of the genetic search: a child's loss follows from its parent's in a few look-ups.

A record is a choice for each site. ``gains[k]`` is the change of the loss if one more record lies
in cell k. A record that comes or goes changes it by ``turns[k] = 2 · weight_k · step²``. A new
record adds the gains of its cells to the loss; a removed one subtracts them, after it is gone.
"""

from __future__ import annotations

import numpy as np

from margrave._kernel import kernel

#: Improvements below this are rounding.
GAIN_TOLERANCE = 1e-9


@kernel
def _random(state):  # type: ignore[no-untyped-def]
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) / 9007199254740992.0


@kernel
def _below(state, count):  # type: ignore[no-untyped-def]
    return min(int(_random(state) * count), count - 1)


@kernel
def _cell(row, layout, term):  # type: ignore[no-untyped-def]
    cell = layout.bases[term]
    for p in range(layout.part_starts[term], layout.part_starts[term + 1]):
        cell += layout.tables[layout.part_tables[p] + row[layout.part_sites[p]]]
    return cell


@kernel
def tally(rows, layout, counts):  # type: ignore[no-untyped-def]
    """Return the number of records in every cell."""
    for i in range(len(rows)):
        for term in range(len(layout.bases)):
            counts[_cell(rows[i], layout, term)] += 1


@kernel
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


@kernel
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
    if change < -GAIN_TOLERANCE:
        row[site] = best if whole else tried[best]
    else:
        change = 0.0
    for z in range(first, last):
        cell = rests[z - first] + layout.tables[layout.site_tables[z] + row[site]]
        gains[cell] += turns[cell]
    return change


@kernel
def _cross(one, other, site, layout, gains, turns):  # type: ignore[no-untyped-def]
    """Let two records exchange their choices of a site, if that lowers the loss; by how much."""
    old, new = one[site], other[site]
    if old == new:
        return 0.0
    change = _replace(one, site, new, layout, gains, turns) + _replace(
        other, site, old, layout, gains, turns
    )
    if change < -GAIN_TOLERANCE:
        return change
    _replace(one, site, old, layout, gains, turns)
    _replace(other, site, new, layout, gains, turns)
    return 0.0


@kernel
def _copy(row, other, layout, gains, turns, before):  # type: ignore[no-untyped-def]
    """Make a record a copy of another, if that lowers the loss; by how much."""
    before[:] = row
    change = 0.0
    for site in range(len(row)):
        if row[site] != other[site]:
            change += _replace(row, site, other[site], layout, gains, turns)
    if change < -GAIN_TOLERANCE:
        return change
    for site in range(len(row)):
        if row[site] != before[site]:
            _replace(row, site, before[site], layout, gains, turns)
    return 0.0


@kernel
def generation(rows, order, crossover, layout, gains, turns, state, tried):  # type: ignore[no-untyped-def]
    """Change every record once, in this order, by a mutation or crossover if it lowers the loss;
    return by how much.
    """
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


@kernel
def _difference(row, site, choice, layout, gains, turns):  # type: ignore[no-untyped-def]
    change = 0.0
    for z in range(layout.site_starts[site], layout.site_starts[site + 1]):
        own = layout.site_tables[z]
        old = _cell(row, layout, layout.site_terms[z])
        new = old - layout.tables[own + row[site]] + layout.tables[own + choice]
        if new != old:
            change += gains[new] - gains[old] + turns[old]
    return change


@kernel
def _brood(rows, gains, turns, losses, slots, mutations, crossovers, layout, state, loss, child):  # type: ignore[no-untyped-def]
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
        value = losses[parent] + _difference(
            rows[at, record], site, choice, layout, gains[at], turns
        )
        place = elite
        while place > 0 and value < loss[place - 1]:
            place -= 1
        if place < elite:
            loss[place + 1 :] = loss[place:-1].copy()
            child[place + 1 :] = child[place:-1].copy()
            loss[place] = value
            child[place, 0], child[place, 1], child[place, 2], child[place, 3] = (
                parent,
                record,
                site,
                choice,
            )


@kernel
def evolve(rows, gains, turns, losses, slots, generations, mutations, crossovers, layout, state):  # type: ignore[no-untyped-def]
    """Evolve an elite: the next one is the best of the elite and its children."""
    elite = len(slots)
    loss, child = np.empty(elite), np.empty((elite, 4), np.int64)
    uses, taken = np.empty(elite, np.int64), np.empty(2 * elite, np.bool_)
    next_losses, next_slots = np.empty(elite), np.empty(elite, np.int64)
    for _ in range(generations):
        _brood(rows, gains, turns, losses, slots, mutations, crossovers, layout, state, loss, child)
        uses[:] = 0
        born, kept = 0, 0
        for e in range(elite):  # both lists are in order: merge their beginnings
            if loss[born] < losses[kept] - GAIN_TOLERANCE:
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
