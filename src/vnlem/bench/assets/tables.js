// The tables: means, tests of pairs, what went wrong, provenance.
"use strict";
(() => {
  const { data, state, on, currentCase, el, fill, signed, formatP, measureOf, better } = bench;
  let order = { column: null, down: true };

  function drawMeans() {
    const { columns, lines } = currentCase().table;
    const head = el("tr", {}, el("th", { scope: "col" }), ...columns.map((text) => el("th", { scope: "col" }, text)));
    const rows = lines.map(({ heading, cells }) =>
      el("tr", {}, el("th", { scope: "row" }, heading),
        ...cells.map(([text, best, alike], place) =>
          el("td", { className: best ? "best" : columns[place].endsWith("[paper]") ? "paper" : "" }, text + (alike ? "°" : "")))));
    fill("table", el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)));
    const notes = [data.footnotes.table];
    if (currentCase().tooFewImages) notes.push(currentCase().tooFewImages);
    if (columns.some((text) => text.endsWith("[paper]"))) notes.push(data.footnotes.paper);
    fill("table-notes", ...notes.map((text) => el("p", { className: "note" }, text)));
  }

  const COLUMNS = [
    ["pair", (row) => `${row.a} − ${row.b}`, (row) => `${row.a} − ${row.b}`],
    ["images", (row) => row.n, (row) => String(row.n)],
    ["mean difference", (row) => row.difference, (row) => signed(row.difference)],
    ["interval", (row) => row.interval?.[0] ?? null, (row) => (row.interval ? `${signed(row.interval[0])} to ${signed(row.interval[1])}` : "–")],
    ["Wilcoxon p (Holm)", (row) => row.wilcoxon.p_holm, (row) => formatP(row.wilcoxon.p_holm)],
    ["effect", (row) => row.wilcoxon.effect, (row) => row.wilcoxon.effect.toFixed(2).replace("-", "−")],
    ["Mann-Whitney p", (row) => row.mann_whitney.p, (row) => formatP(row.mann_whitney.p)],
    ["better / worse / same", (row) => row.wins, (row) => (row.wins == null ? "–" : `${row.wins} / ${row.losses} / ${row.ties}`)],
  ];

  function drawTests() {
    const rows = currentCase().comparisons.filter((row) => row.measure === state.measure);
    if (!rows.length) {
      fill("tests-table", el("p", { className: "note" }, "There is nothing to compare: a pair of methods and images that both have are needed, and a measure of quality."));
      return;
    }
    if (order.column != null) {
      const key = COLUMNS[order.column][1];
      rows.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (order.down ? -1 : 1));
    }
    const head = COLUMNS.map(([title], place) => {
      const button = el("button", { type: "button", onclick: () => sortBy(place) }, title);
      const sorted = order.column === place ? (order.down ? "descending" : "ascending") : null;
      return el("th", { scope: "col", "aria-sort": sorted }, button);
    });
    const body = rows.map((row) => {
      const sure = row.wilcoxon.p_holm < 0.05 && measureOf().direction !== 0;
      const mark = !sure ? "" : row.difference * better() > 0 ? "good" : "bad";
      return el("tr", {}, ...COLUMNS.map(([, , show], place) => el("td", { className: place === 2 ? mark : "" }, show(row))));
    });
    fill("tests-table", el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body)));
  }

  function sortBy(column) {
    order = { column, down: order.column === column ? !order.down : true };
    drawTests();
    document.querySelectorAll("#tests-table th button")[column].focus();
  }

  function drawProblems() {
    const lines = [
      ...data.unreadable.map(({ image, reason }) => [image, reason]),
      ...data.failures.map(({ image, method, reason }) => [method ? `${image} (${method})` : image, reason]),
    ];
    document.getElementById("problems").hidden = !lines.length;
    fill("problem-list", el("dl", {}, ...lines.flatMap(([what, why]) => [el("dt", {}, what), el("dd", {}, why)])));
  }

  function drawProvenance() {
    const lines = Object.entries(data.provenance).map(([key, value]) => [key.replaceAll("_", " "), describe(value)]);
    for (const [label, parameters] of Object.entries(data.parameters)) lines.push([label, describe(parameters)]);
    fill("provenance-list", el("dl", {}, ...lines.flatMap(([what, text]) => [el("dt", {}, what), el("dd", {}, text)])));
  }

  function describe(value) {
    if (value === null || typeof value !== "object") return String(value);
    return Object.entries(value).map(([key, entry]) => `${key} ${entry}`).join(", ");
  }

  function drawFigures() {
    document.getElementById("figures").hidden = !data.figures.length;
    fill("figure-list", ...data.figures.map((path) => el("img", { loading: "lazy", alt: path.replace(/^.*\/|\.png$/g, "").replaceAll("-", " "), src: path })));
  }

  on(["case"], drawMeans);
  on(["case", "measure"], drawTests);
  bench.drawTables = () => {
    drawMeans();
    drawTests();
    drawProblems();
    drawProvenance();
    drawFigures();
  };
})();
