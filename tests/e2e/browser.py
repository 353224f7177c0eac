"""A real browser for tests: Chromium without a window, driven by its own driver over W3C WebDriver, which is JSON over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.patience import PATIENCE

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# Nothing that the browser does by itself may reach a network, and it must run as root in a container.
SWITCHES = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps"),
    *("--disable-features=OptimizationHints,MediaRouter,Translate", "--no-default-browser-check", "--metrics-recording-only"),
)


def programs() -> tuple[str, str] | None:
    """(chromium, its driver), None where either is missing."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


class Browser:
    """One browser with a profile of its own in `folder`."""

    def __init__(self, folder: Path, *, width: int = 1200, dark: bool = False) -> None:
        found = programs()
        assert found is not None
        self._log = (folder / "driver.log").open("wb")
        self._driver = subprocess.Popen(
            [found[1], "--port=0"], stdout=subprocess.PIPE, stderr=self._log, env={**os.environ, "HOME": str(folder)}
        )
        self.session = ""
        try:
            self.port = self._listening()
            switches = [*SWITCHES, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},1000"]
            options = {"binary": found[0], "args": switches + ["--force-dark-mode"] * dark}
            logged = {"browser": "ALL", "performance": "ALL"}
            wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": logged}
            made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self.session = f"/session/{made['sessionId']}"
        except BaseException:
            self.close()
            raise

    def _listening(self) -> int:
        assert self._driver.stdout is not None
        for raw in self._driver.stdout:
            words = raw.decode().strip().rstrip(".").split(" on port ")
            if "started" in words[0] and words[-1].isdigit():
                return int(words[1])
        raise AssertionError("the driver did not say where it listens")

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            value = json.loads(answer.read())["value"]
        finally:
            connection.close()
        assert answer.status == 200, value
        return value

    def open(self, address: str) -> None:
        """Go to an address and wait until it is loaded."""
        self._ask("POST", f"{self.session}/url", {"url": address})

    @property
    def address(self) -> str:
        """Where it is."""
        return str(self._ask("GET", f"{self.session}/url"))

    @property
    def title(self) -> str:
        """The title of the page."""
        return str(self._ask("GET", f"{self.session}/title"))

    def all(self, selector: str) -> list[str]:
        """The elements that a CSS selector finds."""
        found = self._ask("POST", f"{self.session}/elements", {"using": "css selector", "value": selector})
        return [one[ELEMENT] for one in found]

    def _one(self, selector: str) -> str:
        found = self._ask("POST", f"{self.session}/element", {"using": "css selector", "value": selector})
        return str(found[ELEMENT])

    def text(self, selector: str = "main") -> str:
        """What the first element says, as it is seen."""
        return str(self._ask("GET", f"{self.session}/element/{self._one(selector)}/text"))

    def click(self, selector: str) -> None:
        """Click the first element."""
        self._ask("POST", f"{self.session}/element/{self._one(selector)}/click", {})

    def follow(self, text: str) -> None:
        """Click the link that says this."""
        found = self._ask("POST", f"{self.session}/element", {"using": "link text", "value": text})
        self._ask("POST", f"{self.session}/element/{found[ELEMENT]}/click", {})

    def type(self, selector: str, text: str) -> None:
        """Type into the first element."""
        self._ask("POST", f"{self.session}/element/{self._one(selector)}/value", {"text": text})

    def enter(self, selector: str, text: str) -> None:
        """Type into the first element and press Enter: until another page is there."""
        self.run("window.before = true")
        self.type(selector, f"{text}\ue007")
        until = time.monotonic() + PATIENCE
        while not self.run("return !window.before && document.readyState === 'complete'"):
            assert time.monotonic() < until, self.text("body")
            time.sleep(0.02)

    def press(self, keys: str) -> None:
        """Press keys wherever the focus is: \\ue004 is Tab."""
        focused = self._ask("GET", f"{self.session}/element/active")[ELEMENT]
        self._ask("POST", f"{self.session}/element/{focused}/value", {"text": keys})

    def wait(self, selector: str) -> None:
        """Until an element is there: a page that is still being worked out asks again by itself."""
        until = time.monotonic() + PATIENCE
        while not self.all(selector):
            assert time.monotonic() < until, self.text("body")
            time.sleep(0.05)

    def run(self, script: str) -> Any:
        """What a script gives that the driver runs in the page."""
        return self._ask("POST", f"{self.session}/execute/sync", {"script": script, "args": []})

    def resize(self, width: int, height: int = 900) -> None:
        """As if the window were so wide: less than a window may be, too."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._cdp("Emulation.setDeviceMetricsOverride", metrics)

    def dark(self) -> None:
        """As for a reader who wants it dark."""
        self._cdp("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})

    def _cdp(self, command: str, parameters: Mapping[str, Any]) -> Any:
        return self._ask("POST", f"{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def console(self) -> list[str]:
        """What the browser had to complain of since it was last asked."""
        found = self._ask("POST", f"{self.session}/se/log", {"type": "browser"})
        return [str(entry["message"]) for entry in found]

    def requested(self) -> list[str]:
        """Every address that pages asked for since it was last asked."""
        found = self._ask("POST", f"{self.session}/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in found]
        sent = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
        return [url for url in sent if not urlsplit(url).scheme.startswith(("data", "chrome", "about"))]

    def close(self) -> None:
        """End the browser and its driver."""
        try:
            if self.session:
                self._ask("DELETE", self.session)
        finally:
            self._driver.terminate()
            self._driver.wait(PATIENCE)
            assert self._driver.stdout is not None
            self._driver.stdout.close()
            self._log.close()
