// Sort, search and filter the rows of tables, and show all rows. The page contains all rows; this
// script moves and hides them.
{
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function key(row, index, numeric) {
    const cell = row.cells[index];
    const text = cell.dataset.value ?? cell.textContent;
    if (!numeric) return text;
    return text === "" ? NaN : Number(text);
  }

  // Missing values come last in both directions.
  function compare(a, b, numeric, sign) {
    if (!numeric) return sign * collator.compare(a, b);
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
    return sign * (a - b);
  }

  function enhance(block) {
    const table = block.querySelector("table");
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    const search = block.querySelector("[data-search]");
    const selects = [...block.querySelectorAll("[data-choose]")];
    const found = block.querySelector(".found");
    const more = block.querySelector(".more");
    let order = rows;
    let all = false;

    function matches(row) {
      const term = search ? search.value.trim().toLowerCase() : "";
      if (term && !row.cells[0].textContent.toLowerCase().includes(term)) return false;
      return selects.every((select) => !select.value
        || row.cells[Number(select.dataset.choose)].textContent === select.value);
    }

    function refresh() {
      const limit = all ? Infinity : Number(table.dataset.shown);
      let n = 0;
      for (const row of order) {
        row.hidden = !matches(row);
        row.classList.toggle("beyond", !row.hidden && n >= limit);
        n += !row.hidden;
      }
      body.append(...order);
      if (found) found.textContent = n === rows.length ? "" : `${n} of ${rows.length}`;
      if (more) {
        more.hidden = n <= Number(table.dataset.shown);
        more.textContent = all ? "Show fewer" : `Show all ${n.toLocaleString("en")}`;
        more.setAttribute("aria-expanded", String(all));
        block.classList.toggle("expanded", all);
      }
      if (table.classList.contains("heat")) tips.stops(table);
    }

    function sort(head) {
      const index = heads.indexOf(head);
      const numeric = head.classList.contains("numeric");
      // The first click sorts numbers in descending order and names from A to Z.
      const turns = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
      const next = turns[turns.indexOf(head.getAttribute("aria-sort")) + 1] ?? "none";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", next);
      if (next === "none") {
        order = rows;
      } else {
        const sign = next === "ascending" ? 1 : -1;
        order = rows.map((row) => [key(row, index, numeric), row])
          .sort((a, b) => compare(a[0], b[0], numeric, sign)).map((pair) => pair[1]);
      }
      refresh();
    }

    for (const head of heads) head.querySelector(".sort").addEventListener("click", () => sort(head));
    search?.addEventListener("input", refresh);
    for (const select of selects) select.addEventListener("change", refresh);
    more?.addEventListener("click", () => { all = !all; refresh(); });
  }

  for (const block of document.querySelectorAll(".table-block")) enhance(block);
}
