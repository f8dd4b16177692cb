"""How many windows of 1440 by 900 px each chapter of the built site is high at Intermediate."""

import levels
from built import SITE
from playwright.sync_api import sync_playwright
from server import serve
from visits import Visits, launch


def bench():
    print(f"Screens of each chapter at Intermediate; {levels.COURSE} are allowed.\n")
    with sync_playwright() as playwright, serve(SITE.root, SITE.base) as origin:
        visits = Visits(launch(playwright))
        for chapter in SITE.chapters:
            with visits.lend(origin + SITE.base) as visit:
                print(f"{chapter:<32}{levels.screens(visit.go(f'{chapter}?level=intermediate')):6.2f}")
