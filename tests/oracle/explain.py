"""What is saved for backward, operator by operator: explain.py 'model="gpt2", sequence=1024'."""
import sys
from collections import Counter

import case as cases
import tracker


def saved(track):
    """Number of storages that live when the last forward pass has ended, by what made them."""
    alive, at = {}, {}
    for entry in track.log:
        if entry[0] == "mark":
            if entry[1] == "forward_end":
                at = dict(alive)
            continue
        alive[entry[0]] = alive.get(entry[0], 0) + entry[1]
    out = Counter()
    for number, size in at.items():
        made = track.allocations[number]
        if size and made.category not in tracker.STATES:
            out[(made.category, size) + (made.maker or ("?", "", ""))] += 1
    return out


def main():
    kept = {}
    plain = tracker.Tracker.__exit__

    def remember(self, *exception):
        kept["track"] = self
        return plain(self, *exception)

    tracker.Tracker.__exit__ = remember
    cases.run_case(eval(f"cases.Case({sys.argv[1]})"))
    for (category, size, *maker), n in sorted(saved(kept["track"]).items(), key=lambda k: -k[0][1] * k[1]):
        print(f"{size * n / 2**20:10.2f} MiB  {n:4} x {size / 2**20:8.3f}  {category:14}", *maker)


if __name__ == "__main__":
    main()
