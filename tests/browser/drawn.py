"""Charts held against the figures that they are drawn from."""

import math

from page import equal


def words(key):
    for end in ("_gib", "_s"):
        if key.endswith(end):
            key = key[: -len(end)]
    return key.replace("_per_s", " per s").replace("_", " ")


def check_bars(page, name, rows):
    """Stacked bars against rows of {category: value}: every value of every bar."""
    chart = page.chart(name)
    assert chart is not None, f"there is no chart {name}"
    equal(len(chart["labels"]), len(rows), f"bars of {name}")
    sets = {s["label"]: s["data"] for s in chart["sets"]}
    for i, row in enumerate(rows):
        for key, value in row.items():
            equal(sets[words(key)][i], value, f"{name}, bar {i}, {key}")
        total = sum(data[i] for data in sets.values())
        assert math.isclose(total, sum(row.values()), rel_tol=1e-9, abs_tol=1e-9), f"{name}, bar {i}"


def step_parts(breakdown):
    parts = dict(breakdown["compute"])
    if breakdown.get("optimizer"):
        parts["optimizer"] = breakdown["optimizer"]
    for key, value in breakdown["exposed"].items():
        parts[key] = parts.get(key, 0) + value
    for key in ("bubble", "host", "offload"):
        if breakdown[key]:
            parts[key] = breakdown[key]
    return parts


def check_simulation(page, simulation):
    stages = simulation["stages"]
    check_bars(page, "one-memory", [s["breakdown_gib"] for s in stages])
    check_bars(page, "one-step", [step_parts(simulation["breakdown_s"])])
    check_bars(page, "one-path", [simulation["critical_path_s"]])
    over_time = page.chart("one-over-time")["sets"]
    most = 0
    for i, samples in enumerate(simulation["memory_over_time"]):
        points = list(map(list, zip(samples["at_s"], samples["allocated_gib"])))
        equal(over_time[i]["data"], points, f"memory over time of stage {i}")
        most = max([most, *samples["allocated_gib"]])
    equal(float(page.find(".peak").get_attribute("data-peak-gib")), float(most), "the peak's moment")
    if simulation["links"]:
        step = simulation["step_time_s"]["expected"]
        shares = page.chart("one-links")["sets"][0]["data"]
        for share, link in zip(shares, simulation["links"]):
            equal(share, link["busy_s"] / step, f"use of {link['link']}")
    if simulation["collectives"]:
        rows = page.js("return document.querySelectorAll('#one-collectives tbody tr').length")
        equal(rows, min(30, len(simulation["collectives"])), "rows of collectives")
