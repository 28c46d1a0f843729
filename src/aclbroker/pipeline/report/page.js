"use strict";
// Lets a reader search, filter and sort the tables of the report. Without it the first rows of each
// are there. Texts come from clients: they only ever become text nodes.
(() => {
  const ESCAPE = /\\(?:[nrt\\]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})/g;
  const PAGE_SIZES = [25, 100, 500];
  const FEW_ROWS = 10;
  const MOST_CHOICES = 12;
  const LONGEST_CHOICE = 40;
  const MOST_FILTERS = 5;
  const SHORT = 26;
  const numbers = new Intl.NumberFormat("en-US", { maximumFractionDigits: 3 });

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined) node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }

  // Escapes are marked, so that no name can look as if it had one.
  function marked(text) {
    const parts = [];
    let last = 0;
    for (const match of text.matchAll(ESCAPE)) {
      parts.push(text.slice(last, match.index), make("span", { class: "esc" }, match[0]));
      last = match.index + match[0].length;
    }
    parts.push(text.slice(last));
    return parts;
  }

  function told(value) {
    if (value === null) return "\u2013";
    return typeof value === "number" ? numbers.format(value) : value;
  }

  // The rows of a table that is in the page as it is.
  class ShownRows {
    constructor(table) {
      const head = [...table.tHead.rows[0].cells];
      this.rows = [...table.tBodies[0].rows];
      this.count = this.rows.length;
      this.columns = head.map((cell) => ({
        name: cell.textContent,
        number: cell.classList.contains("number"),
      }));
      this.texts = this.rows.map((row) => [...row.cells].map((cell) => cell.textContent));
    }
    key(row, column) {
      const cell = this.rows[row].cells[column];
      if (!this.columns[column].number) return this.texts[row][column];
      return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
    }
    matcher(word) {
      const found = this.texts.map((cells) => cells.some((text) => text.toLowerCase().includes(word)));
      return (row) => found[row];
    }
    choices() {
      return [];
    }
    node(row) {
      return this.rows[row];
    }
  }

  // The rows of a table that is in the page as data: of each column its values, and which row has
  // which of them.
  class DataRows {
    constructor(data) {
      this.columns = data.columns.map((column) => ({
        name: column.name,
        number: column.kind === "number",
        kind: column.kind,
        values: column.values,
        codes: column.codes,
      }));
      this.count = this.columns.length ? this.columns[0].codes.length : 0;
    }
    value(row, column) {
      const { values, codes } = this.columns[column];
      return values[codes[row]];
    }
    key(row, column) {
      return this.value(row, column);
    }
    matcher(word) {
      const found = this.columns.map(({ values }) =>
        values.map((value) => told(value).toLowerCase().includes(word)),
      );
      return (row) => this.columns.some(({ codes }, at) => found[at][codes[row]]);
    }
    choices() {
      const isFew = (values) =>
        values.length > 1 &&
        values.length <= MOST_CHOICES &&
        values.every((value) => told(value).length <= LONGEST_CHOICE);
      const found = this.columns.map(({ name, number, values }, at) => ({ name, number, at, values }));
      return found.filter(({ number, values }) => !number && isFew(values)).slice(0, MOST_FILTERS);
    }
    node(row) {
      return make(
        "tr",
        {},
        ...this.columns.map(({ name, kind }, at) => {
          const value = this.value(row, at);
          const text = told(value);
          const look = value === null ? "nothing" : text.length <= SHORT ? "short" : "";
          const class_ = `${kind === "prose" ? "" : kind} ${look}`.trim() || null;
          return at
            ? make("td", { class: class_, "data-l": name }, ...marked(text))
            : make("th", { class: class_, scope: "row" }, ...marked(text));
        }),
      );
    }
  }

  function compared(one, other) {
    if (one === other) return 0;
    // What is not known comes last, whichever way.
    if (one === null) return 2;
    if (other === null) return -2;
    return one < other ? -1 : 1;
  }

  class Grid {
    constructor(scroll, rows) {
      this.scroll = scroll;
      this.table = scroll.querySelector("table");
      this.rows = rows;
      this.title = scroll.getAttribute("aria-label") || "table";
      this.words = [];
      this.chosen = new Map();
      this.sorted = null;
      this.at = 0;
      this.size = PAGE_SIZES[0];
      this.head();
      if (rows.count > FEW_ROWS) this.tools();
    }

    head() {
      const cells = [...this.table.tHead.rows[0].cells];
      this.heads = cells;
      cells.forEach((cell, column) => {
        const button = make("button", { type: "button", class: "sort" }, ...cell.childNodes);
        button.addEventListener("click", () => this.sort(column));
        cell.replaceChildren(button);
        cell.setAttribute("aria-sort", "none");
      });
    }

    tools() {
      const bar = make("div", { class: "tools" });
      const search = make("input", { type: "search", placeholder: "Search", "aria-label": `Search ${this.title}` });
      search.addEventListener("input", () => {
        this.words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
        this.find();
      });
      bar.append(search);
      for (const { name, at, values } of this.rows.choices()) {
        const order = values.map((_, code) => code).sort((one, other) => compared(values[one], values[other]));
        const select = make(
          "select",
          { "aria-label": `Only this ${name}` },
          make("option", { value: "" }, `${name}: all`),
          ...order.map((code) => make("option", { value: String(code) }, told(values[code]))),
        );
        select.addEventListener("change", () => {
          if (select.value === "") this.chosen.delete(at);
          else this.chosen.set(at, Number(select.value));
          this.find();
        });
        bar.append(select);
      }
      bar.append(this.orders());
      this.status = make("span", { class: "status", role: "status", "aria-live": "polite" });
      this.back = make("button", { type: "button" }, "Previous");
      this.next = make("button", { type: "button" }, "Next");
      this.back.addEventListener("click", () => this.turn(-1));
      this.next.addEventListener("click", () => this.turn(1));
      const size = make(
        "select",
        { "aria-label": "Rows a page" },
        ...PAGE_SIZES.map((each) => make("option", { value: String(each) }, `${each} rows`)),
      );
      size.addEventListener("change", () => {
        this.size = Number(size.value);
        this.at = 0;
        this.show();
      });
      this.scroll.before(bar);
      const turning = this.rows.count > PAGE_SIZES[0] ? [this.back, this.next, size] : [];
      this.scroll.after(make("div", { class: "pages" }, this.status, ...turning));
      this.find();
    }

    // For narrow screens, on which a table has no head.
    orders() {
      const select = make(
        "select",
        { class: "orders", "aria-label": "Sort by" },
        make("option", { value: "" }, "Sort by"),
        ...this.rows.columns.map(({ name }, at) => make("option", { value: String(at) }, name)),
      );
      select.addEventListener("change", () => {
        if (select.value !== "") this.sort(Number(select.value));
      });
      return select;
    }

    // Numbers begin with the largest.
    sort(column) {
      const isNumber = this.rows.columns[column].number;
      const again = this.sorted !== null && this.sorted.column === column;
      const down = again ? !this.sorted.down : isNumber;
      this.sorted = { column, down };
      this.heads.forEach((cell, at) => {
        cell.setAttribute("aria-sort", at === column ? (down ? "descending" : "ascending") : "none");
      });
      this.find();
    }

    find() {
      const tests = this.words.map((word) => this.rows.matcher(word));
      for (const [at, code] of this.chosen) tests.push((row) => this.rows.columns[at].codes[row] === code);
      const found = [];
      for (let row = 0; row < this.rows.count; row += 1) {
        if (tests.every((test) => test(row))) found.push(row);
      }
      if (this.sorted !== null) {
        const { column, down } = this.sorted;
        found.sort((one, other) => {
          const order = compared(this.rows.key(one, column), this.rows.key(other, column));
          return (Math.abs(order) === 2 || !down ? order : -order) || one - other;
        });
      }
      this.found = found;
      this.at = 0;
      this.show();
    }

    turn(pages) {
      this.at += pages * this.size;
      this.show();
    }

    show() {
      const all = this.found.length;
      const end = Math.min(this.at + this.size, all);
      const nodes = this.found.slice(this.at, end).map((row) => this.rows.node(row));
      this.table.tBodies[0].replaceChildren(...nodes);
      if (!this.status) return;
      const of = all === this.rows.count ? numbers.format(all) : `${numbers.format(all)} found`;
      this.status.textContent = all ? `${numbers.format(this.at + 1)}\u2013${numbers.format(end)} of ${of}` : "Nothing found";
      this.back.disabled = this.at === 0;
      this.next.disabled = end === all;
    }
  }

  function head(columns) {
    return make(
      "thead",
      {},
      make("tr", {}, ...columns.map(({ name, number }) => make("th", { scope: "col", class: number ? "number" : null }, name))),
    );
  }

  // A whole table is made when it is opened: there may be many, and they may be long.
  function open(whole) {
    const data = whole.querySelector("script.rows");
    if (!whole.open || data === null) return;
    const rows = new DataRows(JSON.parse(data.textContent));
    data.remove();
    whole.querySelector(".scriptless")?.remove();
    const scroll = whole.querySelector(".scroll");
    const table = scroll.querySelector("table");
    table.replaceChildren(head(rows.columns), make("tbody", {}));
    const grid = new Grid(scroll, rows);
    grid.find();
  }

  function follow() {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target && target.matches("details.whole")) target.open = true;
  }

  for (const whole of document.querySelectorAll("details.whole")) {
    whole.addEventListener("toggle", () => open(whole));
    open(whole);
  }
  for (const scroll of document.querySelectorAll(".scroll")) {
    if (scroll.closest("details.whole")) continue;
    const rows = new ShownRows(scroll.querySelector("table"));
    if (rows.count > 1) new Grid(scroll, rows);
  }
  addEventListener("hashchange", follow);
  follow();
})();
