"""From an event log to bytes by category at the moments that matter.

A tensor that forward made and that lives when forward ends is an activation saved for backward;
one that is gone by then was temporary. Backward's own tensors are temporaries; those of a re-run
forward are recompute; gradients are what ends up in a parameter's .grad.
"""
from collections import defaultdict

GIB = 2.0**30


def settle_categories(tracker):
    """Renames what forward made and still holds at its end: it is saved for backward."""
    alive = defaultdict(int)
    for entry in tracker.log:
        if entry[0] == "mark":
            if entry[1] == "forward_end":
                for number, size in alive.items():
                    made = tracker.allocations[number]
                    if size and made.category in ("temporaries", "communication"):
                        made.category = "activations"
            continue
        alive[entry[0]] += entry[1]
        if alive[entry[0]] == 0:
            del alive[entry[0]]


def moments(tracker):
    """Bytes by category at each mark (the last one of a name wins), and at each phase's peak."""
    settle_categories(tracker)
    now, total, phase = defaultdict(int), 0, "load"
    at, peaks = {}, {}
    for entry in tracker.log:
        if entry[0] == "mark":
            at[entry[1]] = dict(now)
            phase = entry[1]
            continue
        number, change = entry
        now[tracker.allocations[number].category] += change
        total += change
        if total > peaks.get(phase, (0, None))[0]:
            peaks[phase] = (total, dict(now))
    return at, peaks


def gib(bytes_by_category):
    return {k: round(v / GIB, 6) for k, v in sorted(bytes_by_category.items()) if v}
