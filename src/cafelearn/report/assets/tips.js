// Tooltips, in plain text, on hover and on keyboard focus. Screen readers read those on focus.
const tips = (() => {
  const box = document.getElementById("tip");
  const live = document.getElementById("live");

  // A tooltip opened by keyboard follows its element while the page scrolls; `anchor` returns
  // its position. A tooltip opened by pointer has no anchor, and scrolling hides it.
  let anchor = null;
  const pointer = { x: NaN, y: NaN };

  function place(x, y) {
    const { width, height } = box.getBoundingClientRect();
    const left = Math.min(Math.max(8, x + 14), innerWidth - width - 8);
    const top = y + 18 + height > innerHeight ? y - height - 12 : y + 18;
    box.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
  }

  function show(text, x, y) {
    anchor = null;
    box.textContent = text;
    box.hidden = false;
    place(x, y);
  }

  function showAt(text, where, aloud = true) {
    show(text, ...where());
    anchor = where;
    if (aloud) live.textContent = text.replaceAll("\n", ", ");
  }

  function hide() {
    anchor = null;
    box.hidden = true;
  }

  // Scrolling sends pointer events even if the pointer rests. These must not hide a tooltip that
  // was opened by keyboard.
  function rests(event) {
    return anchor !== null && event.clientX === pointer.x && event.clientY === pointer.y;
  }

  // Text for a heat map cell: row and column, value, and details.
  function ofCell(cell) {
    const table = cell.closest("table");
    const row = cell.parentElement.cells[0].textContent;
    const column = table.tHead.rows[0].cells[cell.cellIndex].textContent;
    const lines = [`${row} · ${column}`.trim(), `${table.dataset.measure} ${cell.dataset.value}`];
    if (cell.dataset.extra !== undefined) {
      lines.push(table.dataset.extra
        ? `${table.dataset.extra} ${cell.dataset.extra}` : cell.dataset.extra);
    }
    return lines.join("\n");
  }

  function beside(element) {
    showAt(ofCell(element), () => {
      const { left, width, bottom } = element.getBoundingClientRect();
      return [left + width / 2, bottom - 8];
    });
  }

  const TIPPED = "table.heat td.shade";

  document.addEventListener("pointerover", (event) => {
    if (rests(event)) return;
    const element = event.target.closest?.(TIPPED);
    if (element) show(ofCell(element), event.clientX, event.clientY);
    else if (!event.target.closest?.(".plot")) hide();
  });
  document.addEventListener("pointermove", (event) => {
    if (rests(event)) return;
    const element = event.target.closest?.(TIPPED);
    if (element) show(ofCell(element), event.clientX, event.clientY);
  });
  // This listener is on window, so that it runs after all others, which need the old position.
  window.addEventListener("pointermove", (event) => {
    [pointer.x, pointer.y] = [event.clientX, event.clientY];
  });
  document.addEventListener("focusin", (event) => {
    const element = event.target.closest?.(TIPPED);
    if (!element || !element.matches(":focus-visible")) return hide();
    beside(element);
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  document.addEventListener("scroll", () => {
    if (anchor) place(...anchor());
    else hide();
  }, { passive: true, capture: true });

  // Each heat map is one tab stop; arrow keys move within it.
  function walk(from, to) {
    if (!to) return;
    from.setAttribute("tabindex", "-1");
    to.setAttribute("tabindex", "0");
    to.focus({ focusVisible: true });
  }

  function stops(table) {
    const cells = table.querySelectorAll("td.shade");
    for (const cell of cells) cell.setAttribute("tabindex", "-1");
    const first = [...cells].find((cell) => cell.parentElement.checkVisibility?.() ?? true);
    first?.setAttribute("tabindex", "0");
  }

  function neighbour(cell, key) {
    const step = { ArrowLeft: "previousElementSibling", ArrowRight: "nextElementSibling" }[key];
    if (step) {
      let next = cell[step];
      while (next && !next.matches(".shade")) next = next[step];
      return next;
    }
    let row = cell.parentElement;
    do row = key === "ArrowUp" ? row.previousElementSibling : row.nextElementSibling;
    while (row && (row.hidden || row.classList.contains("beyond")));
    return row?.cells[cell.cellIndex];
  }

  for (const table of document.querySelectorAll("table.heat")) {
    stops(table);
    table.addEventListener("keydown", (event) => {
      if (!event.key.startsWith("Arrow") || !event.target.matches("td.shade")) return;
      event.preventDefault();
      walk(event.target, neighbour(event.target, event.key));
    });
  }
  return { show, showAt, hide, rests, stops };
})();
