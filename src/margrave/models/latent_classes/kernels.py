"""Compiled loops of the latent-class sampler: Metropolis steps of one class at a time.

``logs`` holds logarithms of gamma variables. Scaled to sum to 1 within a block, they are Dirichlet
probabilities. ``members`` lists the codes of every measured cell, as rows of the table of codes; −1
fills shorter lists. ``pull`` is the precision matrix times the gaps, expected less noisy counts.
"""

from __future__ import annotations

import numpy as np

from margrave._kernel import kernel


@kernel
def products(members, table, out):  # type: ignore[no-untyped-def]
    """Write down each class's probability of every measured cell."""
    for g in range(len(table)):
        for cell in range(len(members)):
            out[g, cell] = _product(members[cell], table[g])


@kernel
def _product(codes, probabilities):  # type: ignore[no-untyped-def]
    value = 1.0
    for code in codes:
        if code >= 0:
            value *= probabilities[code]
    return value


@kernel
def joint_probabilities(members, column_of, weights, table, out):  # type: ignore[no-untyped-def]
    """Write down the probability that a record lies in both of two measured cells, for all of them."""
    together = np.empty(2 * members.shape[1], dtype=np.int64)
    for a in range(len(members)):
        for b in range(a + 1):
            possible, size = True, 0
            for code in members[a]:
                if code >= 0:
                    together[size] = code
                    size += 1
            for code in members[b]:
                new = code >= 0
                for other in members[a]:
                    if new and other >= 0 and column_of[other] == column_of[code]:
                        possible = possible and other == code
                        new = False
                if new:
                    together[size] = code
                    size += 1
            value = 0.0
            if possible:
                for g in range(len(weights)):
                    value += weights[g] * _product(together[:size], table[g])
            out[a, b] = out[b, a] = value


@kernel
def _scale(logs, shares):  # type: ignore[no-untyped-def]
    top, total = -np.inf, 0.0
    for v in range(len(logs)):
        top = max(top, logs[v])
    for v in range(len(logs)):
        shares[v] = np.exp(logs[v] - top)
        total += shares[v]
    for v in range(len(logs)):
        shares[v] /= total


@kernel
def _propose(logs, step, prior, rng, new, shares):  # type: ignore[no-untyped-def]
    """Walk in the logarithms; return the change of the log prior."""
    change = 0.0
    for v in range(len(logs)):
        new[v] = logs[v] + step * rng.standard_normal()
        change += prior * (new[v] - logs[v]) - np.exp(new[v]) + np.exp(logs[v])
    _scale(new, shares)
    return change


@kernel(fast=True)
def _misfit(cells, moves, precision, pull):  # type: ignore[no-untyped-def]
    """Return the change of half the squared distance if the gaps of these cells move."""
    change = 0.0
    for i in range(len(cells)):
        row = precision[cells[i]]
        inner = 0.5 * row[cells[i]] * moves[i]
        for k in range(i):
            inner += row[cells[k]] * moves[k]
        change += moves[i] * (pull[cells[i]] + inner)
    return change


@kernel
def _move(cells, moves, precision, pull):  # type: ignore[no-untyped-def]
    for i in range(len(cells)):
        if moves[i] != 0.0:
            row = precision[cells[i]]
            for k in range(len(pull)):
                pull[k] += row[k] * moves[i]


@kernel
def _moves(records):  # type: ignore[no-untyped-def]
    """Return False for an empty class, whose steps move no count: it follows its prior."""
    return records > 1e-9


@kernel
def _swap(one, other):  # type: ignore[no-untyped-def]
    for v in range(len(one)):
        one[v], other[v] = other[v], one[v]


@kernel
def _adapted(step, change):  # type: ignore[no-untyped-def]
    """Return the step size after one more step, for an acceptance of 0.3."""
    return min(4.0, step * np.exp(0.1 * (np.exp(min(change, 0.0)) - 0.3)))


@kernel
def _step_weight(g, rng, problem, state, steps, adapting, everything, moves):  # type: ignore[no-untyped-def]
    records, precision, priors = problem[4:]
    class_logs, _, weights, _, chances, pull = state
    shares = np.empty(len(weights))
    before = class_logs[g]
    class_logs[g] += steps[g, 0] * rng.standard_normal()
    change = priors[0] * (class_logs[g] - before) - np.exp(class_logs[g]) + np.exp(before)
    _scale(class_logs, shares)
    moved = 0.0
    for h in range(len(weights)):
        moved = max(moved, records * abs(shares[h] - weights[h]))
    filled = _moves(moved)
    if filled:
        for cell in range(len(moves)):
            moves[cell] = 0.0
            for h in range(len(weights)):
                moves[cell] += records * (shares[h] - weights[h]) * chances[h, cell]
        change -= _misfit(everything, moves, precision, pull)
    if np.log(rng.random()) < change:
        for h in range(len(weights)):
            weights[h] = shares[h]
        if filled:
            _move(everything, moves, precision, pull)
    else:
        class_logs[g] = before
    if adapting:
        steps[g, 0] = _adapted(steps[g, 0], change)


@kernel
def _step_column(g, j, rng, problem, state, steps, adapting, moves, fresh, new, shares):  # type: ignore[no-untyped-def]
    members, starts, touched, firsts, records, precision, priors = problem
    _, code_logs, weights, table, chances, pull = state
    logs, probabilities = (
        code_logs[g, starts[j] : starts[j + 1]],
        table[g, starts[j] : starts[j + 1]],
    )
    own = touched[firsts[j] : firsts[j + 1]]
    change = _propose(logs, steps[g, 1 + j], priors[1], rng, new, shares)
    _swap(probabilities, shares)
    for i in range(len(own)):
        fresh[i] = _product(members[own[i]], table[g])
        moves[i] = records * weights[g] * (fresh[i] - chances[g, own[i]])
    filled = _moves(records * weights[g])
    if filled:
        change -= _misfit(own, moves[: len(own)], precision, pull)
    if np.log(rng.random()) < change:
        _swap(logs, new)
        for i in range(len(own)):
            chances[g, own[i]] = fresh[i]
        if filled:
            _move(own, moves[: len(own)], precision, pull)
    else:
        _swap(probabilities, shares)
    if adapting:
        steps[g, 1 + j] = _adapted(steps[g, 1 + j], change)


@kernel
def walk(rng, problem, state, steps, adapting, thin, seen_weights, seen_tables):  # type: ignore[no-untyped-def]
    """Make ``thin`` sweeps for each row of ``seen_weights`` and ``seen_tables``, and write it down.

    A sweep is one step of each class's weight, and of each class's probabilities of each column.
    ``problem`` holds members, starts, touched, firsts, records, precision and priors:
    ``touched[firsts[j] : firsts[j + 1]]`` are the cells of marginals with the column j, whose codes begin at
    ``starts[j]``. ``state`` holds the logarithms, weights, table, products and pull.
    """
    starts, (classes, cells) = problem[1], state[4].shape
    everything, moves, fresh = np.arange(cells), np.empty(cells), np.empty(cells)
    new, shares = np.empty(starts[-1]), np.empty(starts[-1])
    for t in range(len(seen_weights)):
        for _ in range(thin):
            for g in range(classes):
                _step_weight(g, rng, problem, state, steps, adapting, everything, moves)
                for j in range(len(starts) - 1):
                    size = starts[j + 1] - starts[j]
                    _step_column(
                        g, j, rng, problem, state, steps, adapting, moves, fresh, new[:size],
                        shares[:size],
                    )  # fmt: skip
        for g in range(classes):
            seen_weights[t, g] = state[2][g]
            for code in range(starts[-1]):
                seen_tables[t, g, code] = state[3][g, code]
