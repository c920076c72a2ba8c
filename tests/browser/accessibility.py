"""What axe-core finds wrong with the pages.

AXE_JS names a copy of axe.min.js. One that a package carries:

  python3 -m venv /tmp/axe && /tmp/axe/bin/pip install --no-deps axe-playwright-python
  AXE_JS=$(echo /tmp/axe/lib/python3*/site-packages/axe_playwright_python/axe.min.js) tests/browser/check.sh

Last run: 2026-11-21, axe-core 4.12.1, Chromium 156: no violation of any impact in 14 reports, each at both widths and in
both colours, nor on the served page with each of its four questions.

Every rule that axe-core has on by default is run, over every view with all of its folded parts open; what it calls
serious or critical fails, and so does the rest unless it is listed here with the reason.
"""

import served_page
from page import SCHEMES, WIDTHS, Page, equal

ACCEPTED = {}


def found(page, axe):
    page.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.js(axe)
    return page.browser.execute_async_script("""
      const done = arguments[0];
      axe.run(document).then((r) => done(r.violations.map((v) =>
        [v.id, v.impact, v.nodes.length + " x " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")])));""")


def is_clean(page, axe, where):
    wrong = [f"{rule} ({impact}): {what}" for rule, impact, what in found(page, axe)
             if impact in ("serious", "critical") or rule not in ACCEPTED]
    equal(wrong, [], f"accessibility of {where}")


def reports(browser, files, axe):
    for file in files:
        for width, scheme in zip(WIDTHS, SCHEMES):
            page = Page(browser, file, width, scheme)
            is_clean(page, axe, f"{page.name} at {width} px, {scheme}")
            page.js(f"S.setTheme('{'dark' if scheme == 'light' else 'light'}')")
            is_clean(page, axe, f"{page.name} at {width} px in the other colours")


def served(browser, program, axe):
    with served_page.Server(program) as server:
        for command in served_page.COMMANDS:
            page = served_page.opened(browser, server, 390)
            served_page.write(page, "gpus", "2xRTX-4090")
            served_page.settled(page, {"gpus": "2xRTX-4090"})
            served_page.choose(page, "command", command)
            is_clean(page, axe, f"the served page, {command}")
