// Tables that sort and filter.
//
// columns: [{key, title, word, show, cell}]; `show` makes text of a value, `cell` a node of the row.
// Sorting is by the values, not by how they are shown. Long tables show their first rows.
S.valueAt = (row, key) => (row !== null && typeof row === "object" && Object.hasOwn(row, key) ? row[key] : undefined);
S.asText = (value) => {
  if (value === null || value === undefined) return "";
  if (S.isNumber(value)) return S.digits(value, 6);
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
};
S.compare = (a, b) => {
  const empty = (v) => v === undefined || v === null || v === "";
  if (empty(a) || empty(b)) return Number(empty(a)) - Number(empty(b));
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
};

S.table = (id, rows, columns, { filter = false, first = 100, open = null } = {}) => {
  const state = { sorted: -1, falling: false, text: "", most: first };
  const body = S.el("tbody");
  const count = S.el("span", { class: "soft", role: "status" });
  const more = S.el("button", { type: "button", class: "quiet", onclick: () => { state.most *= 10; draw(); } }, "More rows");
  const heads = columns.map((column, i) =>
    S.el("th", { class: column.word ? "word" : null, scope: "col", "aria-sort": "none" },
      S.el("button", { type: "button", onclick: () => sort(i) }, column.title === "" ? "what" : column.title)));
  const order = rows.map((row, i) => i);
  const texts = filter ? rows.map((row) => columns.map((c) => S.asText(S.valueAt(row, c.key))).join("\n").toLowerCase()) : null;
  const cell = (row, index, column) => {
    const value = S.valueAt(row, column.key);
    const content = column.cell ? column.cell(row, index) : column.show && value !== undefined ? column.show(value) : S.asText(value);
    const shown = column.word && typeof content === "string" ? S.name(content) : content;
    return S.el("td", { class: column.word ? "word" : null }, shown);
  };
  function draw() {
    const kept = state.text === "" ? order : order.filter((i) => texts[i].includes(state.text));
    body.replaceChildren(...kept.slice(0, state.most).map((i) =>
      S.el("tr", { "data-row": i, class: open && S.opened === i ? "open" : null }, columns.map((c) => cell(rows[i], i, c)))));
    count.textContent = (kept.length === rows.length ? "" : kept.length + " of ") + S.counted(rows.length, "row");
    more.hidden = kept.length <= state.most;
  }
  function sort(i) {
    state.falling = state.sorted === i ? !state.falling : false;
    state.sorted = i;
    const key = columns[i].key, sign = state.falling ? -1 : 1;
    order.sort((a, b) => sign * S.compare(S.valueAt(rows[a], key), S.valueAt(rows[b], key)) || a - b);
    heads.forEach((head, k) => head.setAttribute("aria-sort", k !== i ? "none" : state.falling ? "descending" : "ascending"));
    draw();
  }
  draw();
  const input = filter ? S.el("input", { type: "search", "aria-label": "Filter the rows", placeholder: "filter", oninput: (e) => {
    state.text = e.target.value.toLowerCase();
    draw();
  } }) : null;
  return S.el("div", { class: "table", id },
    filter || rows.length > first ? S.el("div", { class: "controls" }, input, count) : null,
    S.el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table " + S.words(id).replaceAll("-", " ") },
      S.el("table", {}, S.el("thead", {}, S.el("tr", {}, heads)), body)),
    rows.length > first ? more : null);
};

// Columns for rows that nothing is known of: every key whose values are no lists or objects.
S.plainColumns = (rows) => {
  const keys = [];
  for (const row of rows)
    for (const [key, value] of S.entries(row)) if (!keys.includes(key) && (typeof value !== "object" || value === null)) keys.push(key);
  return keys.map((key) => ({ key, title: S.words(key), word: rows.some((r) => typeof S.valueAt(r, key) === "string"), show: (v) => S.measure(key, v) }));
};
