"""The tables of models and of files as a reader sorts, searches and reads them; what leads to pages."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

ROWS = "[...document.querySelectorAll('.lines tbody tr:not(.group)')]"
NAMES = f"{ROWS}.filter((row) => row.checkVisibility()).map((row) => row.querySelector('a').textContent)"
COLUMN = f"(n) => {ROWS}.map((row) => row.children[n].textContent)"


def narrowed(page, words):
    told = page.locator(".counted").inner_text()
    page.locator(".filter[type=search]").fill(words)
    expect(page.locator(".counted")).not_to_have_text(told)
    return page.evaluate(NAMES)


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("Qwen2.5", "qwen2"),
        ("qwen 2.5", "qwen2"),
        ("Llama 3", "llama"),
        ("llama3", "llama"),
        ("Mistral 7B", "mistral"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2"),
        ("meta-llama/Llama-3.1-8B", "llama"),
        ("Phi-3", "phi3"),
        ("phi 4", "phi3"),
        ("DeepSeek R1", "deepseek_v3"),
        ("Gemma 3", "gemma3_text"),
        ("gpt-neox", "gpt_neox"),
        ("GPT-2", "gpt2"),
        ("Qwen3", "qwen3"),
        ("bert", "bert"),
    ],
)
def test_the_name_that_people_use_finds_the_model_type_first(visit, words, first):
    assert narrowed(visit("models/").page, words)[0] == first


def test_a_model_that_is_not_there_is_said_so_and_its_nearest_are_shown(visit):
    page = visit("models/").page
    nearest = narrowed(page, "GPT-4o")
    assert page.locator(".counted").inner_text() == "No row contains “GPT-4o”. The nearest rows:"
    assert len(nearest) == 3 and any("gpt" in name for name in nearest)


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("RoPE", "rope"),
        ("rotary", "rope"),
        ("YaRN", "rope_scaling"),
        ("NTK", "rope_scaling"),
        ("ALiBi", "alibi"),
        ("BLOOM", "alibi"),
        ("gpt-oss", "sinks"),
        ("is my code right", "check_positions"),
        ("KV cache", "decoding"),
    ],
)
def test_a_file_is_found_by_what_it_does_who_uses_it_and_its_other_names(visit, words, first):
    assert narrowed(visit("files/").page, words)[0] == f"{first}.py"


def test_a_column_is_sorted_by_its_head_with_the_keyboard(visit):
    page = visit("models/").page
    order = page.evaluate(NAMES)
    head = page.locator("thead th", has_text="Context")
    button = page.get_by_role("button", name="Sort by context")
    assert head.get_attribute("aria-sort") == "none"
    button.focus()
    for way, sign in (("ascending", 1), ("descending", -1)):
        page.keyboard.press("Enter")
        expect(head).to_have_attribute("aria-sort", way)
        assert page.locator(".group:visible").count() == 0
        lengths = [int(text.replace(",", "")) for text in page.evaluate(COLUMN, 6) if text]
        assert len(lengths) > 300 and lengths == sorted(lengths, key=lambda length: sign * length)
        assert page.evaluate(COLUMN, 6)[-1] == ""
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "none")
    assert page.evaluate(NAMES) == order
    assert page.locator(".group:visible").count() > 3


def test_a_sorted_table_stays_sorted_where_it_is_narrowed_by_a_choice(visit):
    page = visit("models/").page
    page.get_by_label("Only one layout").select_option("interleaved")
    page.get_by_role("button", name="Sort by date").click()
    dates = page.locator(".models tbody tr:visible td:nth-child(8)").all_inner_texts()
    known = [date for date in dates if date]
    assert len(known) > 5 and known == sorted(known)
    page.get_by_label("Only one layout").select_option("")
    assert len(page.evaluate(NAMES)) > 500


def test_a_row_opens_to_all_facts_and_these_can_be_copied(visit):
    visited = visit("models/#qwen2")
    page = visited.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    row = page.locator("tr", has=page.locator("#qwen2"))
    expect(row.locator("details p")).to_be_visible()
    row.get_by_role("button", name="Copy").click()
    expect(row.get_by_role("button")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("qwen2: rotates whole heads, in the half layout, with default base 10,000 ✓;")
    assert visited.problems == []


def test_a_table_is_a_table_to_a_screen_reader_and_without_scripts(visit):
    page = visit("models/", javascript=False).page
    assert page.get_by_role("button").locator("visible=true").count() == 0
    row = page.get_by_role("row", name="mistral RoPE").first
    assert row.get_by_role("cell").count() >= 7 and row.get_by_role("rowheader").inner_text() == "mistral"
    row.locator("summary").click()
    assert row.locator("details p").is_visible()


def test_a_phone_shows_name_positions_and_context_a_line_each(visit):
    page = visit("models/", window="phone").page
    page.set_viewport_size({"width": 390, "height": 844})
    first = page.locator(".models tbody tr:not(.group)").first
    top = first.bounding_box()["y"]
    assert top < 2 * 844 and not page.get_by_label("Only one layout").is_visible()
    page.get_by_role("button", name="More filters").click()
    assert page.get_by_label("Only one layout").is_visible()
    page.get_by_role("button", name="More filters").click()
    row = page.locator("tr", has=page.locator("#llama"))
    assert row.bounding_box()["height"] < 40
    seen = [cell.inner_text() for cell in row.locator("th, td").all() if cell.is_visible()]
    assert seen[:3] == ["llama", "RoPE", "2,048"]


def test_the_menu_leads_to_the_list_of_files_and_from_each_file_back(visit):
    for path, name in (("reference/rope/", "Rotating q and k"), ("files/", None)):
        page = visit(path).page
        hrefs = page.evaluate(
            "[...document.querySelectorAll('.md-nav--primary a')].map((link) => link.pathname)"
        )
        assert [href for href in hrefs if "/reference/" in href] == [], path
        assert any(href.endswith("/files/") for href in hrefs)
        if name:
            assert page.locator(".md-tabs__item--active").inner_text() == "Code and labs"
            beside = page.locator(".md-footer__link .md-ellipsis").all_inner_texts()
            assert [each.split()[-1] for each in beside] == ["embed.py", "rope_scaling.py"]
            page.locator(".trail a", has_text=name).click()
            page.wait_for_url("**/files/#rotating-q-and-k")
            assert page.locator("#rotating-q-and-k").is_visible()


def test_the_page_that_is_not_there_searches_for_what_one_types(visits, origin, built):
    with visits.lend(origin + built.base) as visited:
        page = visited.go("no/such/page/").page
        page.get_by_label("A symptom").fill("output is garbage after 4096 tokens")
        page.get_by_role("button", name="Search", exact=True).click()
        page.locator(".md-search-result__item a", has_text="LongRoPE switches").wait_for()


def test_the_answer_stands_above_the_tables_of_the_page_on_choosing(visit):
    page = visit("guide/choosing/?level=basic").page
    answer, diagram = page.locator("h2#how-to-decide"), page.locator(".diagram").first
    assert answer.bounding_box()["y"] < 940 and diagram.bounding_box()["y"] < 940
    assert diagram.bounding_box()["y"] < page.locator("article table").first.bounding_box()["y"]
    phone = visit("guide/choosing/?level=basic", window="phone").page
    phone.set_viewport_size({"width": 390, "height": 844})
    for head in ("Text length", "Excess loss"):
        box = phone.locator("th", has_text=head).first.bounding_box()
        assert box["x"] + box["width"] <= 390, head


def test_a_phone_shows_the_whole_of_the_sites_name_that_has_room(visit):
    page = visit("files/", window="phone").page
    title = page.locator(".md-header__title .md-ellipsis").first
    assert title.inner_text().strip() == "Positional encoding"
    assert title.evaluate("(each) => each.scrollWidth <= each.clientWidth")
