"""Views of plans, scaling, reasons and whole runs against the figures in the file."""

from drawn import check_bars, check_simulation
from page import Page, equal


def texts(page, selector):
    return page.js("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)


def scaling(browser, pages):
    page = Page(browser, pages["scaling"])
    points = [p for p in page.answer["scaling"] if "best" in p]
    assert len(points) > 3, "a curve needs points"
    tokens = [[p["gpus"], p["best"]["tokens_per_s"]] for p in points]
    sets = page.chart("scaling-chart")["sets"]
    equal(sets[0]["data"], tokens, "the best plan's tokens")
    for (gpus, found), point in zip(sets[1]["data"], points):
        equal(found, tokens[0][1] * gpus / tokens[0][0], f"in proportion at {point['gpus']}")
    named = page.js("return S.charts.get('scaling-chart').scales.x.ticks.map((t) => t.label)")
    equal(named, [f"{p['gpus']:,}" for p in points], "names on the axis")
    cost = [[p["gpus"], p["best"]["usd_per_million_tokens"]] for p in points]
    equal(page.chart("scaling-cost")["sets"][0]["data"], cost, "rent of a token")
    plans = texts(page, "#scaling-table tbody td:nth-child(2)")
    equal(plans, [p["best"]["plan"] for p in points], "plans")
    fastest = min(range(len(page.answer["plans"])), key=lambda i: page.answer["plans"][i]["step_time_s"]["expected"])
    equal(page.js("return S.opened"), fastest, "the plan of the verdict is open")
    equal(sorted(d["of"] for d in page.details), list(range(len(points))), "every size is there in full")
    check_simulation(page, page.details[fastest]["simulation"])


def front(browser, pages):
    """Every plan of the front is a point, and a click opens it, with its step where the file has that."""
    page = Page(browser, pages["front"])
    best = {(p["cluster"], p["plan"]) for p in page.answer["plans"]}
    more = [p for p in page.answer["pareto"] if (p["cluster"], p["plan"]) not in best]
    assert len(more) > 5, "a front beside the best plans"
    plans = page.answer["plans"] + more
    points = [tuple(point) for s in page.chart("pareto")["sets"][:-1] for point in s["data"]]
    equal(sorted(points), sorted((p["step_time_s"]["expected"], p["peak_memory_gib"]["device"]) for p in plans), "points")
    known = {d["of"] for d in page.details}
    assert known - set(range(len(best))), "some of the front are there in full"
    with_step = max(known)
    without = next(i for i in range(len(plans)) if i not in known)
    for index in (with_step, without):
        page.click(page.find(f'#plan-table tr[data-row="{index}"] .open-plan'))
        equal(page.find("#opened").get_attribute("data-opened"), str(index), "opened")
        assert plans[index]["plan"] in texts(page, "#opened")[0], "the plan's name"
        if index == with_step:
            check_simulation(page, next(d for d in page.details if d["of"] == index)["simulation"])
        else:
            memory = page.js("return S.gib(arguments[0])", plans[index]["peak_memory_gib"]["device"])
            assert memory in page.find("#plan").text, "what is known of it"
    equal(page.messages(), [], "console after opening plans of the front")


def reasons(browser, pages):
    page = Page(browser, pages["why"])
    explain = page.answer["explain"]
    equal(page.find(".bound").get_attribute("data-bound"), explain["bound"]["by"], "what bounds the step")
    share = page.js("return S.percent(arguments[0])", explain["bound"]["share"])
    assert share in page.find(".bound").text, share
    check_bars(page, "why-bound", [explain["bound"]["parts_s"]])
    shown = texts(page, ".derivation")
    equal(len(shown), len(explain["figures"]), "derivations")
    for text, figure in zip(shown, explain["figures"]):
        value = page.js("return S.shownUnit(arguments[0], arguments[1])", figure["value"], figure["unit"])
        for part in [value, figure.get("what", ""), figure.get("formula", "")]:
            assert part in text, f"{part!r} is not in {text[:300]!r}"
        for given in figure["inputs"]:
            for part in (given.get("trust", ""), given.get("source", "")):
                assert part in text, f"{part!r} is not in the derivation of {figure['key']}"
    why_not = " ".join(texts(page, ".why-not"))
    assert page.answer["why_not"], "somebody asked why not"
    for asked in page.answer["why_not"]:
        for part in [asked["plan"], *asked["reasons"]]:
            assert part in why_not, part


def whole_run(browser, pages):
    """Figures of other keys are shown with the unit that the key ends in."""
    page = Page(browser, pages["simulate"])
    outlook = page.answer["outlook"]
    wall = dict(zip(*[texts(page, f"#one-outlook-wall_s td:nth-child({n})") for n in (1, 2)]))
    for key, value in outlook["wall_s"].items():
        equal(wall[key], page.js("return S.seconds(arguments[0])", value), f"wall_s.{key}")
    flat = dict(zip(*[texts(page, f"#one-outlook td:nth-child({n})") for n in (1, 2)]))
    equal(flat["goodput"], page.js("return S.percent(arguments[0])", outlook["goodput"]), "goodput")
    equal(flat["mtbf"], page.js("return S.seconds(arguments[0])", outlook["mtbf_s"]), "time between failures")


def stages(browser, pages):
    """What each stage does, its phases and collectives; and the stages that a large timeline leaves out."""
    page = Page(browser, pages["simulate"])
    parts = []
    for rank in page.answer["ranks"]:
        row = dict(rank["busy_s"])
        for key, value in rank["exposed_s"].items():
            row[key] = row.get(key, 0) + value
        parts.append({**row, "bubble": rank["bubble_s"]})
    check_bars(page, "one-stages", parts)
    worst = page.answer["stages"][page.answer["worst_stage"]]
    shown = zip(*[texts(page, f"#one-phases tbody td:nth-child({n})") for n in (1, 2, 3, 4)])
    found = {row[0]: list(row[1:]) for row in shown}
    expected = {phase.replace("_", " "): [page.js("return S.gib(arguments[0])", m[key]) for key in ("allocated", "reserved", "device")]
                for phase, m in worst["phases_gib"].items()}
    equal(found, expected, "phases of a run")
    equal(texts(page, "#one-collectives tbody td:nth-child(4)"),
          [page.js("return S.digits(arguments[0])", c["size_bytes"] / 2**20) for c in page.answer["collectives"][:30]], "sizes")
    page = Page(browser, pages["large"])
    left_out = page.details[0]["timeline"]["stages_left_out"]
    assert left_out > 0, "this step is too large to be drawn whole"
    equal(page.find("[data-left-out]").get_attribute("data-left-out"), str(left_out), "stages left out")
    drawn = {row["stage"] for row in page.details[0]["timeline"]["lanes"]}
    equal(len(drawn) + left_out, len(page.answer["stages"]), "stages drawn and left out")


TESTS = (("scaling", scaling), ("front", front), ("reasons", reasons), ("a whole run", whole_run), ("stages", stages))
