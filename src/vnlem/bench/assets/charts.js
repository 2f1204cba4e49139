// The charts, drawn with Observable Plot: distributions, categories, scatter of two methods.
"use strict";
(() => {
  const { data, images, methods, ours, state, set, on, currentCase, value, measureOf, format, signed, gain, thumbnailOf, el, fill } = bench;
  const MOST_COLOURS = 10;
  const FEWEST_FOR_TICKS = 400;

  const widthOf = (id) => Math.max(300, document.getElementById(id).clientWidth);
  const indices = d3.range(images.name.length);
  const shown = (number) => (number == null ? NaN : number * measureOf().factor);
  const marginLeft = () => Math.min(160, 20 + 7 * d3.max(methods, (label) => label.length));
  const colour = { domain: methods, scheme: "observable10" };

  function drawDistributions() {
    const kept = state.measure === "seconds" ? ours : methods;
    const points = kept.flatMap((method) => indices.map((index) => ({ method, x: shown(value(index, method)) }))).filter((point) => Number.isFinite(point.x));
    const few = indices.length <= FEWEST_FOR_TICKS;
    fill("distribution-chart", Plot.plot({
      width: widthOf("distribution-chart"),
      marginLeft: marginLeft(),
      height: 50 + 46 * kept.length,
      x: { label: measureOf().heading, grid: true, nice: true },
      y: { label: null, domain: kept },
      color: colour,
      ariaLabel: `Distribution of ${measureOf().heading} for each method`,
      marks: [
        few ? Plot.tickX(points, { x: "x", y: "method", stroke: "method", strokeOpacity: 0.35, inset: 1 }) : null,
        Plot.boxX(points, { x: "x", y: "method", fill: "method", fillOpacity: 0.45, stroke: "currentColor", r: 1.5 }),
      ],
    }));
  }

  function drawCategories() {
    const kept = ours;
    const rows = Object.entries(currentCase().categories).flatMap(([category, part]) =>
      kept.map((method) => {
        const found = part.methods[method][state.measure];
        const half = found.std == null ? 0 : (1.96 * found.std) / Math.sqrt(found.n);
        return { category: `${category} (${part.n})`, method, mean: shown(found.mean), low: shown(found.mean - half), high: shown(found.mean + half) };
      })).filter((row) => Number.isFinite(row.mean));
    const nCategories = new Set(rows.map((row) => row.category)).size;
    fill("category-chart", Plot.plot({
      width: widthOf("category-chart"),
      height: 60 + nCategories * (12 + 11 * kept.length),
      marginLeft: 10,
      marginRight: Math.min(190, 20 + 6.5 * (d3.max(rows, (row) => row.category.length) ?? 0)),
      x: { label: measureOf().heading, grid: true, nice: true },
      y: { axis: null, domain: kept },
      fy: { label: null, axis: "right" },
      color: { ...colour, domain: kept, legend: true },
      ariaLabel: `${measureOf().heading} by category`,
      marks: [
        Plot.ruleY(rows, { fy: "category", y: "method", x1: "low", x2: "high", stroke: "method", strokeWidth: 2 }),
        Plot.dot(rows, { fy: "category", y: "method", x: "mean", fill: "method", r: 3.5, channels: { method: "method" }, tip: { format: { y: false, fill: false } } }),
      ],
    }));
  }

  function drawScatter() {
    const { method, against } = state;
    document.getElementById("scatter-title").textContent = `${method} against ${against}, image by image`;
    const categories = [...new Set(images.category)];
    const colourful = categories.length > 1 && categories.length <= MOST_COLOURS;
    const points = indices.map((index) => ({ index, x: shown(value(index, against)), y: shown(value(index, method)), category: images.category[index] }))
      .filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y));
    const extent = d3.extent(points.flatMap((point) => [point.x, point.y]));
    const width = widthOf("scatter-chart");
    const chart = Plot.plot({
      width,
      height: Math.min(560, Math.max(320, width * 0.75)),
      marginLeft: 50,
      grid: true,
      x: { label: `${measureOf().heading}, ${against} →`, domain: extent, nice: true },
      y: { label: `↑ ${method}`, domain: extent, nice: true },
      color: colourful ? { legend: true, domain: categories } : undefined,
      ariaLabel: `${method} against ${against}: ${measureOf().heading}, one point per image`,
      marks: [
        points.length ? Plot.line([[extent[0], extent[0]], [extent[1], extent[1]]], { stroke: "currentColor", strokeDasharray: "4 4", strokeOpacity: 0.6 }) : null,
        Plot.dot(points, { x: "x", y: "y", stroke: colourful ? "category" : "var(--accent)", fill: colourful ? "category" : "var(--accent)", fillOpacity: 0.35, r: 3.5 }),
        Plot.dot(points, Plot.pointer({ x: "x", y: "y", stroke: "currentColor", strokeWidth: 2, r: 7 })),
      ],
    });
    chart.addEventListener("input", () => preview(chart.value));
    chart.addEventListener("click", () => {
      if (!chart.value) return;
      set({ image: images.name[chart.value.index] });
      document.getElementById("gallery").scrollIntoView();
    });
    fill("scatter-chart", chart);
    preview(null);
  }

  function preview(point) {
    if (!point) return fill("preview", el("p", { className: "caption" }, "Hover over a point to see its image."));
    const { index } = point;
    fill("preview",
      ...(data.hasPictures ? [el("img", { src: thumbnailOf(index), alt: "" })] : []),
      el("strong", {}, images.name[index]),
      el("div", { className: "caption" }, images.category[index]),
      el("div", {}, `${state.method}: ${format(value(index, state.method))}`),
      el("div", {}, `${state.against}: ${format(value(index, state.against))}`),
      el("div", { className: gain(index) > 0 ? "good" : gain(index) < 0 ? "bad" : "" }, `gain ${signed(gain(index))}`));
  }

  on(["case", "measure"], drawDistributions);
  on(["case", "measure"], drawCategories);
  on(["case", "measure", "method", "against"], drawScatter);
  bench.drawCharts = () => {
    drawDistributions();
    drawCategories();
    drawScatter();
  };
})();
