"""A real headless Chromium, as a reader of reports has one."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

CHROMEDRIVER = "/usr/bin/chromedriver"
CHROMIUM = "/usr/bin/chromium"


class Browser:
    """One window; every page starts as a reader would first see it."""

    def __init__(self, chrome: Chrome) -> None:
        self.chrome = chrome

    def open(self, file: Path, width: int = 1200, dark: bool = False) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.chrome.get(file.as_uri())

    def complaints(self) -> list[str]:
        """What the console said since it was last asked."""
        return [entry["message"] for entry in self.chrome.get_log("browser")]  # type: ignore[no-untyped-call]  # selenium has no type here

    def script(self, text: str, *arguments: object) -> Any:
        return self.chrome.execute_script(f"return {text}", *arguments)

    def text(self, selector: str) -> list[str]:
        return [each.text for each in self.chrome.find_elements(By.CSS_SELECTOR, selector)]

    def column(self, number: int, heading: str) -> list[str]:
        """The cells below a heading of the nth sortable table, from top to bottom."""
        table = self.chrome.find_elements(By.CSS_SELECTOR, "table.sortable")[number]
        headings = [each.text for each in table.find_elements(By.TAG_NAME, "th")]
        place = headings.index(heading) + 1
        return [each.text for each in table.find_elements(By.CSS_SELECTOR, f"tbody td:nth-child({place})")]

    def sort(self, number: int, heading: str) -> None:
        """Click a heading of the nth sortable table."""
        table = self.chrome.find_elements(By.CSS_SELECTOR, "table.sortable")[number]
        button = next(each for each in table.find_elements(By.CSS_SELECTOR, "th button") if each.text == heading)
        self.script("arguments[0].click()", button)

    def picture(self, file: Path) -> None:
        """The whole page as PNG."""
        asked = {"format": "png", "captureBeyondViewport": True}
        shot = self.chrome.execute_cdp_cmd("Page.captureScreenshot", asked)
        file.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self) -> bytes:
        """The page as it is printed."""
        printed = self.chrome.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": False})
        return base64.b64decode(printed["data"])


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """A browser with a profile of its own; the machine's network stays out of reach."""
    options = ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
        "--disable-background-networking",
        "--proxy-server=127.0.0.1:9",
        f"--user-data-dir={folder}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = Chrome(options=options, service=Service(CHROMEDRIVER))
    try:
        yield Browser(chrome)
    finally:
        chrome.quit()
