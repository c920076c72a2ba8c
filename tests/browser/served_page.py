"""The page of `shardwise serve`: answers while somebody types, from what the server says."""

import os
import subprocess
import time

from drawn import check_bars, check_simulation
from page import SCHEMES, WIDTHS, Page, equal
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

COMMANDS = ("fit", "plan", "models", "shop")
PATIENCE = 60  # seconds, for whatever has to happen some time
CONFIG = "tests/catalog/hf_configs/Qwen--Qwen3-8B.json"


class Server:
    def __init__(self, program):
        self.process = subprocess.Popen([program, "serve", "--port", "0", "--seconds", "60"],
                                        stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def settled(page, question=None):
    """Waits until the page has drawn an answer to `question` (keys of the request), or told a problem."""
    given_up = time.time() + PATIENCE
    while time.time() < given_up:
        page.read()
        state = page.find("#state").text
        request = {**page.answer.get("request", {}), "command": page.answer.get("command")}
        if state == "" and all(request.get(key) == value for key, value in (question or {}).items()) and "command" in page.answer:
            return
        time.sleep(0.05)
    raise AssertionError(f"no answer to {question}: {page.find('#state').text!r}, {page.answer.get('request')}")


def opened(browser, server, width=1440, scheme="light"):
    page = Page(browser, server.address, width, scheme)
    settled(page, {"command": "fit"})
    return page


def write(page, field, text):
    box = page.find("#" + field)
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(text)


def choose(page, field, value):
    Select(page.find("#" + field)).select_by_value(value)
    settled(page, {field: value})


def looks_at_plans(page):
    found = len(page.all("#plan-table tbody tr"))
    equal(found, len(page.answer["plans"]), "plans")


def looks_at_models(page):
    names = page.js("return [...document.querySelectorAll('#models-table tbody td:first-child')].map((e) => e.textContent)")
    equal(names, [m["model"] for m in page.answer["models"]][:50], "models")


def looks_at_offers(page):
    points = sorted(tuple(p) for s in page.chart("offers-scatter")["sets"] for p in s["data"])
    equal(points, sorted((o["time_s"] / 3600, o["usd_total"]) for o in page.answer["offers"]), "offers")
    totals = page.js("return [...document.querySelectorAll('#offers-table tbody td:nth-child(6)')].map((e) => e.textContent)")
    expected = [page.js("return S.dollars(arguments[0])", o["usd_total"]) for o in page.answer["offers"][:30]]
    equal(totals, expected, "totals")


LOOKS = {"plan": looks_at_plans, "models": looks_at_models, "shop": looks_at_offers}


def answers_while_typing(browser, program, names):
    with Server(program) as server:
        for width, scheme in zip(WIDTHS, SCHEMES):
            page = opened(browser, server, width, scheme)
            write(page, "gpus", "2xRTX-4090")
            settled(page, {"gpus": "2xRTX-4090"})
            write(page, "model", "qwen2.5-7b")
            settled(page, {"model": "qwen2.5-7b"})
            check_bars(page, "memory", [p["breakdown_gib"] for p in page.answer["answers"] if "breakdown_gib" in p])
            for command in COMMANDS[1:]:
                choose(page, "command", command)
                LOOKS[command](page)
                wide = page.js("return document.documentElement.scrollWidth")
                assert wide <= width, f"{command} is {wide} px wide"
                assert len(page.all("main section")) > 0, f"{command} shows nothing"
            equal(page.messages(), [], "console")


def plans_are_simulated(browser, program, names):
    with Server(program) as server:
        page = opened(browser, server)
        write(page, "gpus", "2xRTX-4090")
        settled(page, {"gpus": "2xRTX-4090"})
        plans = [i for i, p in enumerate(page.answer["answers"]) if "step_time_s" in p]
        page.click(page.find(f'#plan-table tr[data-row="{plans[-1]}"] .open-plan'))
        given_up = time.time() + PATIENCE
        while not page.details and time.time() < given_up:
            page.read()
        equal([d["of"] for d in page.details], [plans[-1]], "the plan that was clicked")
        settled(page)
        simulation, plan = page.details[0]["simulation"], page.answer["answers"][plans[-1]]
        equal(simulation["plan"], plan["plan"], "its plan")
        equal(simulation["step_time_s"], plan["step_time_s"], "its step")
        check_simulation(page, simulation)
        equal(page.messages(), [], "console")


def files_are_taken(browser, program, names):
    with Server(program) as server:
        page = opened(browser, server)
        page.find("#config").send_keys(os.path.abspath(CONFIG))
        settled(page, {"model": "config.json"})
        write(page, "model", "gpt2")
        settled(page, {"model": "gpt2"})
        equal(page.messages(), [], "console")


def says_what_is_wrong(browser, program, names):
    """Problems are told in words, whatever somebody types; the answer before them stays."""
    with Server(program) as server:
        page = opened(browser, server)
        page.js("window.alerts = 0; window.alert = () => { window.alerts += 1; };")
        before = page.js("return document.querySelectorAll('*').length")
        for name in [n for n in names if n.isprintable() and max(map(ord, n)) < 0x10000][:40:4]:
            write(page, "gpus", name[:200])
            given_up = time.time() + PATIENCE
            while page.find("#state").text in ("", "Asking \u2026") and time.time() < given_up:
                time.sleep(0.02)
            assert page.find("#state").text not in ("", "Asking \u2026"), f"nothing is said of {name!r}"
            equal(page.js("return [document.querySelectorAll('*').length, window.alerts]"), [before, 0], repr(name))
            write(page, "gpus", "2xRTX-4090")
            settled(page, {"gpus": "2xRTX-4090"})
            before = page.js("return document.querySelectorAll('*').length")
        unasked = [m for m in page.messages() if "400" not in m]  # the browser notes each refusal
        equal(unasked, [], "console")


def reachable_by_keyboard(browser, program, names):
    with Server(program) as server:
        page = opened(browser, server, 390)
        reached = []
        for _ in range(16):
            ActionChains(browser).send_keys(Keys.TAB).perform()
            reached.append(browser.switch_to.active_element.get_attribute("id"))
        wanted = [e.get_attribute("id") for e in page.all("#ask input, #ask select")]
        equal([i for i in reached if i in wanted], wanted, "fields in order")


TESTS = (("the served page answers", answers_while_typing), ("its plans are simulated", plans_are_simulated),
         ("it takes files", files_are_taken), ("it says what is wrong", says_what_is_wrong),
         ("its keyboard", reachable_by_keyboard))
