// The scatter plot. All points of a group are one path, so that the page has few elements.
{
  const SVG = "http://www.w3.org/2000/svg";
  const COLOURS = 8;
  // Groups differ in shape as well as in colour.
  const SHAPES = [
    (r) => `m${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`,
    (r) => `m${-0.88 * r},${-0.88 * r}h${1.76 * r}v${1.76 * r}h${-1.76 * r}z`,
    (r) => `m0,${-1.2 * r}l${1.1 * r},${2 * r}h${-2.2 * r}z`,
    (r) => `m0,${-1.3 * r}l${1.2 * r},${1.3 * r}l${-1.2 * r},${1.3 * r}l${-1.2 * r},${-1.3 * r}z`,
    (r) => `m0,${1.2 * r}l${1.1 * r},${-2 * r}h${-2.2 * r}z`,
  ];

  function make(parent, name, attributes = {}, text = null) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== null) element.textContent = text;
    return parent.appendChild(element);
  }

  function colour(group) { return `var(--g${group % COLOURS})`; }
  function shape(group) {
    return SHAPES[(group + Math.floor(group / COLOURS)) % SHAPES.length];
  }
  function paint(svg, group) {
    const tone = colour(group);
    make(svg, "path", { d: `M0,0${shape(group)(4.4)}`, style: `fill:${tone};stroke:${tone}` });
  }
  for (const svg of document.querySelectorAll(".swatch")) paint(svg, Number(svg.dataset.group));

  function ticks(low, high, most) {
    const raw = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((f) => f * power >= raw * 0.999);
    const made = [];
    for (let i = Math.ceil(low / step); i * step <= high; i += 1) {
      made.push(Number((i * step).toPrecision(6)));
    }
    return made;
  }

  function span(values) {
    let low = Infinity;
    let high = -Infinity;
    for (const v of values) {
      if (v === null) continue;
      if (v < low) low = v;
      if (v > high) high = v;
    }
    if (low > high) return [0, 1];
    const padding = (high - low) * 0.05 || Math.abs(high) * 0.1 || 1;
    return [low - padding, high + padding];
  }

  function scatter(root) {
    const data = JSON.parse(document.getElementById(root.dataset.points).textContent);
    const svg = root.querySelector(".plot");
    const legend = root.querySelector(".legend");
    const found = root.querySelector(".found");
    const chosen = { axes: [0, 1], colour: 0, hidden: new Set(), at: -1 };
    let places = [];
    let ring = null;

    function options(select, names, picked) {
      names.forEach((name, i) => {
        const option = document.createElement("option");
        option.value = i;
        option.textContent = name;
        option.selected = i === picked;
        select.append(option);
      });
    }

    const axisNames = data.axes.map((axis) => axis.name);
    root.querySelectorAll("[data-axis]").forEach((select, which) => {
      options(select, axisNames, chosen.axes[which]);
      select.addEventListener("change", () => {
        chosen.axes[which] = Number(select.value);
        draw();
      });
    });
    const colours = root.querySelector("[data-colour]");
    options(colours, data.colours.map((c) => c.name), 0);
    colours.closest("label").hidden = data.colours.length < 2;
    colours.addEventListener("change", () => {
      chosen.colour = Number(colours.value);
      chosen.hidden.clear();
      keys();
      draw();
    });

    function keys() {
      legend.replaceChildren();
      const { groups, codes } = data.colours[chosen.colour];
      const sizes = new Array(groups.length).fill(0);
      for (const code of codes) sizes[code] += 1;
      groups.forEach((name, group) => {
        const button = document.createElement("button");
        button.type = "button";
        button.setAttribute("aria-pressed", "true");
        const swatch = make(button, "svg", {
          class: "swatch", viewBox: "-6 -6 12 12", "aria-hidden": "true" });
        paint(swatch, group);
        button.append(`${name} (${sizes[group].toLocaleString("en")})`);
        button.addEventListener("click", () => {
          const off = !chosen.hidden.delete(group);
          if (off) chosen.hidden.add(group);
          button.setAttribute("aria-pressed", String(!off));
          draw();
        });
        legend.append(button);
      });
    }

    function draw() {
      const width = Math.max(280, Math.round(svg.clientWidth) || 900);
      const height = Math.round(Math.min(560, Math.max(300, width * 0.58)));
      const edge = { left: 58, right: 16, top: 16, bottom: 46 };
      svg.replaceChildren();
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      const [across, up] = chosen.axes.map((i) => data.axes[i]);
      const [lowX, highX] = span(across.values);
      const [lowY, highY] = span(up.values);
      const toX = (v) => edge.left + (v - lowX) / (highX - lowX) * (width - edge.left - edge.right);
      const toY = (v) => height - edge.bottom
        - (v - lowY) / (highY - lowY) * (height - edge.top - edge.bottom);
      const end = { x: width - edge.right, y: height - edge.bottom };
      for (const t of ticks(lowY, highY, 6)) {
        make(svg, "line", { class: "grid", x1: edge.left, x2: end.x, y1: toY(t), y2: toY(t) });
        make(svg, "text", { x: edge.left - 8, y: toY(t) + 4, "text-anchor": "end" }, String(t));
      }
      for (const t of ticks(lowX, highX, width > 600 ? 8 : 4)) {
        make(svg, "line", { class: "grid", x1: toX(t), x2: toX(t), y1: edge.top, y2: end.y });
        make(svg, "text", { x: toX(t), y: end.y + 16, "text-anchor": "middle" }, String(t));
      }
      make(svg, "text", { class: "label", x: (edge.left + end.x) / 2, y: height - 8,
        "text-anchor": "middle" }, across.name);
      make(svg, "text", { class: "label", "text-anchor": "middle",
        transform: `translate(14 ${(edge.top + end.y) / 2}) rotate(-90)` }, up.name);

      const { groups, codes } = data.colours[chosen.colour];
      const n = data.ids.length;
      const radius = n > 2000 ? 2.2 : n > 500 ? 3 : 4;
      const paths = groups.map(() => []);
      places = [];
      for (let i = 0; i < n; i += 1) {
        if (across.values[i] === null || up.values[i] === null) continue;
        if (chosen.hidden.has(codes[i])) continue;
        const x = toX(across.values[i]);
        const y = toY(up.values[i]);
        places.push({ i, x, y });
        paths[codes[i]].push(`M${x.toFixed(1)},${y.toFixed(1)}${shape(codes[i])(radius)}`);
      }
      paths.forEach((path, group) => {
        const tone = colour(group);
        if (path.length) {
          make(svg, "path", { class: "points", d: path.join(""), style: `fill:${tone};stroke:${tone}` });
        }
      });
      ring = make(svg, "circle", { class: "ring", r: radius + 4, visibility: "hidden" });
      chosen.at = -1;
    }

    function describe(i) {
      const lines = [`row ${data.ids[i]}`];
      for (const c of data.colours) lines.push(c.name === "cluster"
        ? c.groups[c.codes[i]] : `${c.name} ${c.groups[c.codes[i]]}`);
      for (const axis of new Set(chosen.axes)) {
        lines.push(`${data.axes[axis].name} ${data.axes[axis].values[i]}`);
      }
      const margin = data.axes.length - 1;
      if (!chosen.axes.includes(margin)) {
        lines.push(`${data.axes[margin].name} ${data.axes[margin].values[i]}`);
      }
      return lines.join("\n");
    }

    function point(place) {
      chosen.at = place.i;
      ring.setAttribute("cx", place.x);
      ring.setAttribute("cy", place.y);
      ring.setAttribute("visibility", "visible");
      return () => {
        const matrix = svg.getScreenCTM();
        return [matrix.e + place.x * matrix.a, matrix.f + place.y * matrix.d];
      };
    }

    function hover(place) { tips.show(describe(place.i), ...point(place)()); }

    function pick(place, aloud) { tips.showAt(describe(place.i), point(place), aloud); }

    function leave() {
      ring.setAttribute("visibility", "hidden");
      tips.hide();
    }

    svg.addEventListener("pointermove", (event) => {
      if (tips.rests(event)) return;
      const matrix = svg.getScreenCTM();
      const x = (event.clientX - matrix.e) / matrix.a;
      const y = (event.clientY - matrix.f) / matrix.d;
      let best = null;
      let nearest = 24 ** 2;
      for (const place of places) {
        const distance = (place.x - x) ** 2 + (place.y - y) ** 2;
        if (distance < nearest) [best, nearest] = [place, distance];
      }
      if (best) hover(best);
      else leave();
    });
    svg.addEventListener("pointerleave", (event) => { if (!tips.rests(event)) leave(); });
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: ["x", 1], ArrowLeft: ["x", -1], ArrowUp: ["y", -1],
        ArrowDown: ["y", 1], Home: ["x", -Infinity], End: ["x", Infinity] }[event.key];
      if (!step || !places.length) return;
      event.preventDefault();
      const order = [...places].sort((a, b) => a[step[0]] - b[step[0]]);
      const at = order.findIndex((place) => place.i === chosen.at);
      const next = at < 0 ? 0 : Math.min(order.length - 1, Math.max(0, at + step[1]));
      pick(order[next], true);
    });

    const find = root.querySelector("[data-find]");
    find.addEventListener("input", () => {
      const term = find.value.trim().toLowerCase();
      leave();
      found.textContent = "";
      if (!term) return;
      const named = (test) => places.find((place) => test(data.ids[place.i].toLowerCase()));
      const place = named((id) => id === term) ?? named((id) => id.includes(term));
      found.textContent = place ? describe(place.i).replaceAll("\n", ", ") : "no visible point has this name";
      if (place) pick(place, false);
    });

    keys();
    draw();
    let width = svg.clientWidth;
    new ResizeObserver(() => {
      if (Math.abs(svg.clientWidth - width) < 2) return;
      width = svg.clientWidth;
      draw();
    }).observe(svg);
  }

  for (const root of document.querySelectorAll(".scatter")) scatter(root);
}
