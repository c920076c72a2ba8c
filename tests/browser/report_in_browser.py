"""The report's pages in headless Chromium, held against the figures that they carry.

report_in_browser.py PAGES HOSTILE_NAMES PROGRAM: PAGES is a folder of reports that check.sh wrote. Prints a
line for what fails and "N passed, N failed" at the end. How fast a page opens is printed, not judged.
"""

import glob
import json
import math
import os
import sys
import time
import traceback

import accessibility
import plan_views
import served_page
from drawn import check_bars, check_simulation
from page import SCHEMES, WIDTHS, Page, equal, start
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

def check_timeline_data(page, timeline):
    """Decoded rows against the columns, summed here anew."""
    decoded = page.js("""
      return S.timelines[0].model.rows.map((r) => [r.stage, r.name, r.length,
        r.length ? r.end[r.length - 1] : 0, r.end.reduce((sum, e, i) => sum + e - r.start[i], 0)]);""")
    expected = []
    for lane in timeline["lanes"]:
        n = lane["slices"]
        expected.append([lane["stage"], lane["lane"], len(n) // 7, sum(n[0::7]) + sum(n[1::7]), sum(n[1::7])])
    for link in timeline["links"]:
        n = link["slices"]
        expected.append([link["stage"], link["link"], len(n) // 3, sum(n[0::3]) + sum(n[1::3]), sum(n[1::3])])
    equal(sorted(decoded), sorted(expected), "rows of the timeline")


def every_view(browser, files):
    """Opens each report at each width in each scheme: no message, nothing wider than the window."""
    for file in files:
        for width in WIDTHS:
            for scheme in SCHEMES:
                page = Page(browser, file, width, scheme)
                where = f"{page.name} at {width} px, {scheme}"
                equal(page.messages(), [], f"console of {where}")
                wide = page.js("return document.documentElement.scrollWidth")
                assert wide <= width, f"{where} is {wide} px wide"
                back = page.js("return getComputedStyle(document.body).backgroundColor")
                equal(back, "rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 27)", where)
                empty = page.js("""return [...S.charts.entries()].filter(([, c]) =>
                  c.width < 50 || c.height < 50 || c.data.datasets.length === 0).map(([n]) => n)""")
                equal(empty, [], f"charts without size in {where}")
                if width == 1440 and scheme == "light":
                    size = os.path.getsize(file) / 1e6
                    print(f"{page.name}: opened in {page.opened:.2f} s, {size:.2f} MB")
                    assert size < 5, f"{page.name} has {size:.1f} MB"


def figures_of_simulate(browser, pages):
    for name in ("simulate", "large"):
        page = Page(browser, pages[name])
        check_simulation(page, page.answer)
        check_timeline_data(page, page.details[0]["timeline"])
        tile = page.find('[data-figure="tokens_per_s"] b').text.replace(",", "")
        assert abs(float(tile) / page.answer["tokens_per_s"] - 1) < 0.01, "the tile of tokens/s"
        verdict = page.find(".verdict").text
        assert verdict.startswith(page.answer["verdict"].replace("_", " ")), verdict


def figures_of_plans(browser, pages):
    for name, key in (("compare", "plans"), ("fit", "answers"), ("nofit", "answers")):
        page = Page(browser, pages[name])
        plans = page.answer[key]
        check_bars(page, "memory", [p["breakdown_gib"] for p in plans if "breakdown_gib" in p])
        told = [p for p in plans if "step_time_s" in p]
        if len(told) > 1:
            points = [tuple(point) for s in page.chart("pareto")["sets"][:-1] for point in s["data"]]
            expected = [(p["step_time_s"]["expected"], p["peak_memory_gib"]["device"]) for p in told]
            equal(sorted(points), sorted(expected), f"points of {name}")
            low, high = page.js("const x = S.charts.get('pareto').scales.x; return [x.min, x.max]")
            assert low <= min(points)[0] and max(points)[0] <= high, f"points of {name} from {low} to {high} s"
        rows = page.all("#plan-table tbody tr")
        equal(len(rows), len(plans), f"rows of {name}")
        for row, plan in zip(rows, plans):
            text = row.text.replace("\n", "")
            assert plan["plan"] in text, f"{plan['plan']} is not in {text}"
        detail = next((d for d in page.details if d["of"] == page.js("return S.opened")), None)
        if detail:
            check_simulation(page, detail["simulation"])
        for plan in plans:
            for advice in plan.get("advice", []) + plan.get("faster", []):
                assert advice["change"] in page.find("#plans").text, advice["change"]


def figures_of_validate(browser, pages):
    page = Page(browser, pages["validate"])
    for chart, key in (("scatter-time", "step_time_s"), ("scatter-memory", "peak_mem_gib")):
        expected = {}
        for run in page.answer["runs"]:
            figure = run.get(key, {})
            if "measured" in figure and "predicted" in figure:
                expected.setdefault(run["source"], []).append([figure["measured"], figure["predicted"]])
        data = page.chart(chart)
        if not expected:
            assert data is None
            continue
        found = {s["source"]: s["data"] for s in data["sets"] if s["source"]}
        equal(found, {s: sorted(points, key=lambda p: p[0]) for s, points in expected.items()}, chart)
        low, high = page.js("const x = S.charts.get(arguments[0]).scales.x; return [x.min, x.max]", chart)
        measured = [p[0] for points in expected.values() for p in points]
        assert low <= min(measured) and max(measured) <= high, f"{chart} from {low} to {high}"
    rows = page.js("return document.querySelectorAll('#runs tbody tr').length")
    equal(rows, min(50, len(page.answer["runs"])), "rows of runs")
    table = page.find("#errors").text
    for row in page.answer["score"]["rows"]:
        assert row["name"] in table, row["name"]


def figures_of_calibration(browser, pages):
    page = Page(browser, pages["calibration"])
    fits = page.answer["fits"]
    assert len(fits) > 1, "choosing needs two curves"

    def is_drawn(fit):
        sets = {s["label"]: s["data"] for s in page.chart("fit")["sets"]}
        equal(sets["measured"], [[m["bytes"], m["time_s"]] for m in fit["measured"]], f"measured {fit['name']}")
        equal(sets["fitted"], [[m["bytes"], m["fitted_s"]] for m in fit["measured"]], f"fitted {fit['name']}")
        for label, key in (("10 % lie below", "low"), ("10 % lie above", "high")):
            for (_, found), m in zip(sets[label], fit["measured"]):
                equal(found, m["fitted_s"] * fit[key], label)
        equal(len(page.all("#fit-points tbody tr")), min(100, len(fit["measured"])), "points")

    is_drawn(fits[0])
    page.js("""const s = document.querySelector('select[aria-label="Curve"]');
               s.selectedIndex = 1; s.dispatchEvent(new Event('change'));""")
    is_drawn(fits[1])
    equal(len(page.all("#fits tbody tr")), min(100, len(fits)), "curves")
    shown = page.find("#constants").text
    for key in page.answer["profile"]["constants"]:
        assert key in shown, f"{key} is not among {shown}"


def schedules(browser, pages):
    page = Page(browser, pages["schedules"])
    expected = sorted([s["as_asked"]["step_time_s"]["expected"], max(s["as_asked"]["peak_device_gib"])]
                      for s in page.answer["schedules"] if "as_asked" in s)
    equal(sorted(page.chart("schedules-scatter")["sets"][0]["data"]), expected, "schedules")


def figures_of_sweep(browser, pages):
    page = Page(browser, pages["sweep"])
    rows = {row["point"]: row for row in page.answer["rows"]}
    for i, group in enumerate(page.answer["ranking"]):
        expected = [rows[point][page.answer["ranked_by"]] for point in group["ranked"]]
        equal(page.chart(f"sweep-bars-{i}")["sets"][0]["data"], expected, f"bars of group {i}")
        equal(expected, sorted(expected, reverse=True), f"order of group {i}")
        shown = len(page.all(f"#sweep-table-{i} tbody tr"))
        equal(shown, sum(len(group[key]) for key in ("ranked", "unmeasured", "do_not_fit")), "rows")
    refused = page.find("#sweep-refused").text
    assert "nobody" in refused, refused


def timeline_works(browser, pages):
    page = Page(browser, pages["simulate"])
    view = "const v = S.timelines[0]; "
    span = lambda: page.js(view + "return [v.from, v.to]")
    whole = span()
    equal(whole, [0, page.details[0]["timeline"]["end_ns"]], "the whole step")
    page.click(page.find('[aria-label="Zoom in"]'))
    equal(span()[1] - span()[0], whole[1] / 2, "one press of plus halves the span")
    canvas = page.find(".timeline canvas")
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert span()[0] > whole[1] / 4, "the arrow moves to the right"
    canvas.send_keys(Keys.HOME)
    equal(span(), whole, "Home shows the whole step")
    # The middle of the longest slice of the first row.
    x, y = page.js(view + """const r = v.rows[0];
      const longest = r.start.reduce((best, s, i) => (r.end[i] - s > r.end[best] - r.start[best] ? i : best), 0);
      return [v.x((r.start[longest] + r.end[longest]) / 2), v.top + v.line / 2];""")
    page.js("arguments[0].scrollIntoView({block: 'center'})", canvas)
    middle = lambda: (x - canvas.size["width"] / 2, y - canvas.size["height"] / 2)
    ActionChains(browser).move_to_element_with_offset(canvas, *map(round, middle())).perform()
    tip = page.js("const t = document.querySelector('.tip'); return [t.hidden, t.textContent]")
    first = page.js(view + "const h = v.pick(arguments[0], arguments[1]); return h ? v.describe(h.row, h.at) : null",
                    round(x), round(y))
    equal(tip, [False, first], "hovering tells the slice")
    ActionChains(browser).move_to_element_with_offset(canvas, *map(round, middle())).click().perform()
    equal(page.js(view + "return v.status.textContent"), first, "clicking pins it")
    before = span()
    ActionChains(browser).scroll_from_origin(
        webdriver.common.actions.wheel_input.ScrollOrigin.from_element(canvas), 0, -300).perform()
    assert span()[1] - span()[0] < before[1] - before[0], "the wheel zooms"
    start = span()
    ActionChains(browser).click_and_hold(canvas).move_by_offset(-120, 0).release().perform()
    assert span()[0] > start[0], "dragging to the left moves on"
    search = page.find('[aria-label="Search the timeline"]')
    search.send_keys("B3")
    hits = page.js(view + "return v.hits.length")
    expected = page.js("""return S.timelines[0].model.rows.reduce((n, r) =>
      n + r.tags.filter((t, i) => !r.link && r.kind[i] === "backward" && t[0] === 3 && t[1] === 0).length, 0)""")
    assert hits == expected > 0, f"search found {hits} of {expected}"
    search.send_keys(Keys.ENTER)
    assert "backward of microbatch 3" in page.js(view + "return v.status.textContent")
    equal(page.messages(), [], "console after all that")


def tables_work(browser, pages):
    page = Page(browser, pages["compare"])
    heads = page.all("#plan-table thead button")
    step = next(h for h in heads if h.text.strip().startswith("step"))
    order = lambda: [int(r.get_attribute("data-row")) for r in page.all("#plan-table tbody tr")]
    times = [p.get("step_time_s", {}).get("expected", math.inf) for p in page.answer["plans"]]
    page.click(step)
    equal([times[i] for i in order()], sorted(times), "sorted by step")
    step.send_keys(Keys.ENTER)
    found = [times[i] for i in order()]
    equal(found, sorted(times, reverse=True), "sorted the other way, by the keyboard")
    page.find("#plan-table input").send_keys("pp=4")
    equal(len(order()), sum("pp=4" in p["plan"] for p in page.answer["plans"]), "rows left by the filter")


def plans_open(browser, pages):
    page = Page(browser, pages["compare"])
    others = [d["of"] for d in page.details if d["of"] != page.js("return S.opened")]
    page.click(page.all(".open-plan")[others[0]])
    equal(page.find("#opened").get_attribute("data-opened"), str(others[0]), "opened from the table")
    detail = next(d for d in page.details if d["of"] == others[0])
    check_simulation(page, detail["simulation"])
    canvas = page.find('[data-chart="pareto"] canvas')
    page.js("arguments[0].scrollIntoView({block: 'center'})", canvas)
    x, y, wanted = page.js("""const chart = S.charts.get("pareto");
      const at = chart.getDatasetMeta(0).data[0], raw = chart.data.datasets[0].data[0];
      return [at.x - chart.width / 2, at.y - chart.height / 2, raw.i];""")
    ActionChains(browser).move_to_element_with_offset(canvas, round(x), round(y)).click().perform()
    time.sleep(0.5)
    equal(page.find("#opened").get_attribute("data-opened"), str(wanted), "opened from the scatter")
    equal(page.messages(), [], "console after opening plans")


def colours_change(browser, pages):
    page = Page(browser, pages["simulate"])
    backs = []
    for _ in range(3):
        page.click(page.find("#theme"))
        backs.append(page.js("return getComputedStyle(document.body).backgroundColor"))
    equal(backs, ["rgb(255, 255, 255)", "rgb(20, 23, 27)", "rgb(255, 255, 255)"], "light, dark, system")
    browser.execute_cdp_cmd("Page.printToPDF", {})
    equal(page.messages(), [], "console after printing")


def keyboard_reaches(browser, pages):
    page = Page(browser, pages["compare"])
    wanted = page.js("""return [...document.querySelectorAll("a[href], button, input, select, summary, canvas[tabindex]")]
      .filter((e) => e.offsetParent !== null && !e.closest("details:not([open]) > :not(summary)")).length""")
    reached = page.js("return new Promise((done) => { window.reached = new Set(); done(0); })")
    for _ in range(wanted + 60):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        page.js("""const e = document.activeElement;
          if (e.matches("a[href], button, input, select, summary, canvas[tabindex]")) window.reached.add(e);""")
    reached = page.js("return window.reached.size")
    assert reached >= wanted, f"the keyboard reaches {reached} of {wanted}"


def names_are_text(browser, pages, names):
    for name in ("compare",):
        page = Page(browser, pages[name])
        page.js("""
          window.alerts = 0;
          window.alert = () => { window.alerts += 1; };
          window.plainTags = (() => {
            const count = {};
            for (const e of document.querySelectorAll("*:not(wbr)")) count[e.tagName] = (count[e.tagName] || 0) + 1;
            return count;
          });
          window.original = JSON.stringify(S.document);
        """)
        replace = """
          const name = arguments[0];
          const swap = (v) => Array.isArray(v) ? v.map(swap) : v && typeof v === "object"
            ? Object.fromEntries(Object.entries(v).map(([k, w]) =>
                [k, ["model", "gpu", "plan", "framework", "id", "source", "change"].includes(k) ? name : k === "notes" ? [name] : swap(w)]))
            : v;
          S.document = JSON.parse(window.original);
          S.document.answer = swap(S.document.answer);
          for (const d of S.document.details || []) if (d.simulation) d.simulation = swap(d.simulation);
          S.render();
          return [window.plainTags(), document.querySelector("h1").textContent, window.alerts,
                  document.documentElement.scrollWidth];"""
        plain = page.js(replace, "plain")[0]
        for hostile in names:
            tags, title, alerts, wide = page.js(replace, hostile)
            equal(tags, plain, f"elements of {name} with {hostile[:60]!r}")
            if name != "validate":
                assert title.startswith(hostile), f"{title[:80]!r} instead of {hostile[:80]!r}"
            equal(alerts, 0, f"alerts of {name} with {hostile[:60]!r}")
            assert wide <= page.width, f"{name} is {wide} px wide with {hostile[:60]!r}"
        equal(page.messages(), [], f"console of {name} with hostile names")


def main(folder, names_file, program):
    files = sorted(glob.glob(folder + "/*.html"))
    pages = {os.path.basename(f)[:-5]: f for f in files}
    with open(names_file, encoding="utf-8") as file:
        names = [n if isinstance(n, str) else n["before"] + n["repeat"] * n["times"] for n in json.load(file)]
    tests = [
        ("every view", lambda b: every_view(b, files)),
        ("figures of simulate", lambda b: figures_of_simulate(b, pages)),
        ("figures of a calibration", lambda b: figures_of_calibration(b, pages)),
        ("figures of plans", lambda b: figures_of_plans(b, pages)),
        ("figures of validate", lambda b: figures_of_validate(b, pages)),
        ("schedules", lambda b: schedules(b, pages)),
        ("figures of a sweep", lambda b: figures_of_sweep(b, pages)),
        ("timeline", lambda b: timeline_works(b, pages)),
        ("tables", lambda b: tables_work(b, pages)),
        ("plans open", lambda b: plans_open(b, pages)),
        ("colours", lambda b: colours_change(b, pages)),
        ("keyboard", lambda b: keyboard_reaches(b, pages)),
        ("hostile names", lambda b: names_are_text(b, pages, names)),
        *[(title, lambda b, test=test: test(b, pages)) for title, test in plan_views.TESTS],
        *[(title, lambda b, test=test: test(b, program, names)) for title, test in served_page.TESTS],
    ]
    if os.environ.get("AXE_JS"):
        with open(os.environ["AXE_JS"], encoding="utf-8") as file:
            axe = file.read()
        tests.append(("accessibility", lambda b: accessibility.reports(b, files, axe)))
        tests.append(("accessibility of the served page", lambda b: accessibility.served(b, program, axe)))
    else:
        print("accessibility is not checked: AXE_JS names no copy of axe.min.js (see accessibility.py)")
    failed = 0
    browser = start()
    try:
        for title, test in tests:
            try:
                test(browser)
            except Exception as error:
                failed += 1
                print(f"FAILED {title}: {error}")
                if not isinstance(error, AssertionError):
                    traceback.print_exc(limit=3)
    finally:
        browser.quit()
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
