"""A page in headless Chromium, and how to look at what it has drawn."""

import math
import os
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

WIDTHS = (390, 1440)
SCHEMES = ("light", "dark")


def start():
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


class Page:
    def __init__(self, browser, file, width=1440, scheme="light"):
        self.browser = browser
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        browser.get_log("browser")  # what the page before it said
        begun = time.time()
        browser.get(file if "://" in file else "file://" + file)
        self.opened = time.time() - begun
        self.width = width
        self.name = os.path.basename(file)[:-5]
        self.read()

    def read(self):
        self.answer = self.js("return S.document.answer")
        self.details = self.js("return S.document.details")

    def js(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def messages(self):
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def chart(self, name):
        """The data sets that a chart holds: {label: [values or points]}, and its labels."""
        return self.js("""
          const chart = S.charts.get(arguments[0]);
          if (!chart) return null;
          const value = (d) => (typeof d === "object" ? [d.x, d.y] : d);
          return {labels: chart.data.labels || [],
                  sets: chart.data.datasets.map((d) => ({label: d.label, source: d.source,
                                                         data: d.data.map(value)}))};
        """, name)

    def click(self, element):
        self.js("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)


def equal(found, expected, what):
    if isinstance(expected, float) or isinstance(found, float):
        same = math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12)
    else:
        same = found == expected
    assert same, f"{what}: found {found!r}, expected {expected!r}"
