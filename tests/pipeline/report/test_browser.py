"""The HTML report in a browser: what a reader can do with it, and what no name can do to it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from aclbroker.pipeline.interface.result import Table
from aclbroker.pipeline.report.html import page
from tests.pipeline.report.examples import ENDING, HOSTILE, MATRIX, REPORT
from tests.support.chromium import Browser, browser

WHOLE = 'document.getElementById("rows-what-if-flips")'
OPERATIONS = ["READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION",
              "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"]  # fmt: skip
USES = Table(
    "Events by principal and operation",
    ["Principal", *OPERATIONS],
    [(f"User:service-{n}", *((n * at * 997) % 100_000 for at in range(10))) for n in range(30)],
    30,
    matrix=True,
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    results = [REPORT.results[0], replace(MATRIX, tables=[USES])]
    path.write_text(page(replace(REPORT, results=results)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def shown(running: Browser, file: Path) -> Browser:
    """The report, with the card of all flips open."""
    running.look(1600, 1000)
    running.open(file, "#rows-what-if-flips")
    return running


def names(shown: Browser) -> list[str]:
    found: list[str] = shown.run(
        f"[...{WHOLE}.querySelectorAll('tbody th')].map(cell => cell.textContent)"
    )
    return found


def status(shown: Browser) -> str:
    return str(shown.run(f"{WHOLE}.querySelector('.status').textContent"))


def enter(shown: Browser, selector: str, value: str, event: str) -> None:
    shown.run(
        f"{{ const field = {WHOLE}.querySelector({selector!r}); field.value = {value!r}; "
        f"field.dispatchEvent(new Event({event!r})); }}"
    )


def click(shown: Browser, selector: str) -> None:
    shown.run(f"{WHOLE}.querySelector({selector!r}).click()")


def test_the_browser_has_nothing_to_complain_of(shown: Browser):
    assert shown.run("document.querySelectorAll('.sort').length") > 10
    assert shown.complaints == []


def test_a_link_to_a_whole_table_opens_it_at_its_first_rows(shown: Browser):
    assert shown.run(f"{WHOLE}.open")
    assert status(shown) == "1–25 of 128"  # noqa: RUF001
    assert len(names(shown)) == 25
    assert shown.run(f"{WHOLE}.querySelector('.scriptless')") is None


def test_names_of_clients_are_text_whatever_they_hold(shown: Browser):
    assert names(shown)[: len(HOSTILE) + 1] == [
        '<script>alert("1")</script>',
        "x\\n[2026-01-01 00:00:00,000] DEBUG Principal = User:mallory\\x1b[2J",
        "User:\\u202egnp.exe",
        "a&amp;b",
        "' onload='x",
        "\\u2028",
        "CORP\\\\n",
        ENDING,
    ]
    escapes = shown.run(
        f"[...{WHOLE}.querySelectorAll('tbody th .esc')].map(mark => mark.textContent)"
    )
    assert escapes == ["\\n", "\\x1b", "\\u202e", "\\u2028", "\\\\"]
    assert shown.run("[...document.scripts].filter(each => each.type === '').length") == 1
    assert shown.run("[...document.querySelectorAll('main b')].every(b => b.innerText !== 'bold')")


def test_what_is_searched_for_is_found_on_all_pages(shown: Browser):
    enter(shown, "input", "U11 newly allowed", "input")
    assert status(shown) == "1–3 of 3 found"  # noqa: RUF001
    assert names(shown) == ["User:u112", "User:u115", "User:u118"]
    enter(shown, "input", "nobody", "input")
    assert (status(shown), names(shown)) == ("Nothing found", [])


def test_a_column_of_few_values_can_be_filtered_by_them(shown: Browser):
    label = "select[aria-label='Only this direction']"
    choices = shown.run(f'[...{WHOLE}.querySelector("{label}").options].map(o => o.text)')
    assert choices == ["direction: all", "newly allowed", "newly denied"]
    shown.run(
        f'{{ const field = {WHOLE}.querySelector("{label}"); field.selectedIndex = 1; '
        "field.dispatchEvent(new Event('change')); }"
    )
    assert status(shown) == "1–25 of 43 found"  # noqa: RUF001


def test_a_click_on_a_head_sorts_all_rows_and_a_second_one_the_other_way(shown: Browser):
    head = f"[...{WHOLE}.querySelectorAll('thead th')]"
    click(shown, "thead th:nth-child(6) button")
    assert shown.run(f"{head}.map(cell => cell.ariaSort)")[5] == "descending"
    assert names(shown)[0] == '<script>alert("1")</script>'
    click(shown, "thead th:nth-child(6) button")
    assert shown.run(f"{head}.map(cell => cell.ariaSort)")[5] == "ascending"
    assert names(shown)[:2] == ["User:u119", "User:u118"]


def test_pages_are_turned_up_to_the_last(shown: Browser):
    back, on = ".pages button:nth-of-type(1)", ".pages button:nth-of-type(2)"
    assert shown.run(f"{WHOLE}.querySelector('{back}').disabled")
    for _ in range(5):
        click(shown, on)
    assert status(shown) == "126–128 of 128"  # noqa: RUF001
    assert names(shown) == ["User:u117", "User:u118", "User:u119"]
    assert shown.run(f"{WHOLE}.querySelector('{on}').disabled")
    click(shown, back)
    assert status(shown) == "101–125 of 128"  # noqa: RUF001


def test_each_field_and_button_has_a_name_and_can_be_reached_with_the_keyboard(shown: Browser):
    unnamed = shown.run(
        "[...document.querySelectorAll('button, input, select')].filter(each => "
        "!(each.ariaLabel || each.textContent.trim()) || each.tabIndex < 0).length"
    )
    assert unnamed == 0


@pytest.mark.parametrize("width", [390, 1600])
def test_nothing_is_wider_than_the_screen_and_the_matrix_needs_no_scrolling(
    shown: Browser, width: int
):
    shown.look(width, 900)
    assert shown.run("document.documentElement.scrollWidth") <= width
    scroll = "document.querySelector('.matrix').parentElement"
    assert shown.run(f"{scroll}.scrollWidth - {scroll}.clientWidth") <= 0


def test_without_a_script_the_first_rows_and_all_answers_can_be_read(running: Browser, file: Path):
    running.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        running.look(1600, 1000)
        running.open(file)
        assert names(running)[0] == '<script>alert("1")</script>'
        assert len(names(running)) == 10
        assert running.run("document.querySelectorAll('.tools, .pages, .sort').length") == 0
        text = running.run("document.body.innerText")
        assert "5,811 events of 43 principals would be denied." in text
    finally:
        running.ask("Emulation.setScriptExecutionDisabled", value=False)
