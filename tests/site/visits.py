"""A page opened in Chromium, with all it asked for and complained of."""

import os
import shutil
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-proxy-server",
    "--force-color-profile=srgb",
    # Other hosts fail at once, with or without a network, and are counted. No request is
    # intercepted for this: interception would switch off the cache and change what is measured.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
DESKTOP, PHONE, NARROWEST = (1350, 940), (360, 740), (320, 640)
WIDE = (1440, 1920)  # a loaded page is widened to these: a style sheet may have other rules there
WINDOWS = {"desktop": DESKTOP, "phone": PHONE}
SECONDS = 10  # that a page may take for what a reader waits for
FRAME = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))"
# A colour that fades from one medium or theme to the other is neither for a while.
FADED = """Promise.allSettled(document.getAnimations().filter((each) => each instanceof CSSTransition)
  .map((each) => each.finished)).then(() => null)"""


def find_chromium():
    """Path of the browser: $CHROMIUM, else the first known name on the PATH."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        raise FileNotFoundError(f"no Chromium: set $CHROMIUM or install one of {', '.join(NAMES)}")
    return found


def launch(playwright):
    return playwright.chromium.launch(
        executable_path=find_chromium(), headless=True, args=FLAGS, timeout=60_000
    )


class Visit:
    """One page in a browser context of its own; use as a context manager.

    `allowed` is the address that every request must begin with.
    """

    def __init__(self, browser, allowed, *, theme="light", window="desktop", javascript=True):
        self.window = window
        self.context = browser.new_context(
            reduced_motion="reduce",
            java_script_enabled=javascript,
            is_mobile=window == "phone",
            has_touch=window == "phone",
        )
        self.page = self.context.new_page()
        self._listen()
        self.begin(allowed, theme)

    def begin(self, allowed, theme):
        self.allowed = allowed
        self.context.set_default_timeout(SECONDS * 1000)
        self.requests, self.problems, self._pending = [], [], set()
        self.fit()
        self.theme = theme
        self.page.emulate_media(media="screen", color_scheme=theme)

    def fit(self, size=None):
        """Give the window this size, or back its own."""
        width, height = size or WINDOWS[self.window]
        self.page.set_viewport_size({"width": width, "height": height})

    def turn(self, theme):
        """As if the reader turned the system; what the page does about it, it does in the next frame."""
        self.theme = theme
        self.page.emulate_media(color_scheme=theme)
        self.page.evaluate(FADED)
        self.page.evaluate(FRAME)

    def forget(self):
        """Leave the page that is open, and nothing of it behind: no file in the cache, no value stored."""
        # A newer Chromium does not take the tab's own storage for the origin's.
        origin = self.page.evaluate("() => { sessionStorage.clear(); return origin; }")
        self.page.goto("about:blank")
        devtools = self.context.new_cdp_session(self.page)
        devtools.send("Network.clearBrowserCache")
        devtools.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        devtools.detach()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def _listen(self):
        page = self.page
        page.on("request", self._asked)
        page.on("requestfinished", lambda request: self._pending.discard(request))
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        page.on("crash", lambda _: self.problems.append("the page crashed"))
        page.on("dialog", lambda dialog: dialog.dismiss())

    def _asked(self, request):
        if not request.url.startswith(("http:", "https:", "ws:", "wss:")):
            return
        self.requests.append(request)
        self._pending.add(request)
        if not request.url.startswith(self.allowed):
            self.problems.append(f"Third-party request: request outside the site: {request.url}")

    def _failed(self, request):
        self._pending.discard(request)
        if request.failure != "net::ERR_ABORTED":  # cut off by a visit to the next page
            self.problems.append(f"request failed ({request.failure}): {request.url}")

    def _answered(self, response):
        if response.status >= 400:
            self.problems.append(f"status {response.status}: {response.url}")

    def _said(self, message):
        if message.type in ("error", "warning", "assert"):
            at = message.location.get("url", "")
            self.problems.append(f"console {message.type}: {message.text[:300]} {at}".rstrip())

    def go(self, path=""):
        self.page.goto(self.allowed + path, wait_until="load", timeout=30_000)
        return self

    def settle(self):
        """Wait until nothing has been under way for a fifth of a second."""
        quiet = 0
        for _ in range(100):
            self.page.wait_for_timeout(50)
            quiet = 0 if self._pending else quiet + 1
            if quiet == 4:
                return
        self.problems.append(f"never quiet; waiting for {[r.url for r in self._pending][:3]}")

    def ask(self, question, *arguments):
        """Evaluate one function of probes.js in the page."""
        return ask(self.page, question, *arguments)

    def bytes_received(self):
        """Headers and bodies over the wire, compressed, of all that was asked for."""
        return sum(map(_size, self.requests))


def _size(request):
    response = request.response()
    if response is None:
        return 0
    size = request.sizes()
    # Chromium reports no body for the script of a worker, so believe the server where it says more.
    said = int(response.headers.get("content-length", 0))
    return size["responseHeadersSize"] + max(size["responseBodySize"], said)


class Visits:
    """Lends visits. One that came back is lent again, as new: a new context costs a second of processor."""

    def __init__(self, browser):
        self.browser, self._idle = browser, defaultdict(list)

    @contextmanager
    def lend(self, allowed, *, theme="light", window="desktop", javascript=True):
        idle = self._idle[window, javascript]
        if idle:
            visit = idle.pop()
            visit.begin(allowed, theme)
        else:
            visit = Visit(self.browser, allowed, theme=theme, window=window, javascript=javascript)
        yield visit
        visit.forget()
        idle.append(visit)


_PROBES = (HERE / "probes.js").read_text(encoding="utf-8")


def ask(page, question, *arguments):
    return page.evaluate(f"(arguments) => ({_PROBES}).{question}(...arguments)", list(arguments))
