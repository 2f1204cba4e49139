// Assembles the page: headings, controls, theme, and the first drawing.
"use strict";
(() => {
  const { data, images, methods, state, set, on, currentCase, measureOf, readAddress, el, SORTS } = bench;
  const find = (id) => document.getElementById(id);

  function describe() {
    find("folder").textContent = data.provenance.folder;
    document.title = `vnlem bench: ${data.provenance.folder}`;
    const categories = new Set(images.category).size;
    const parts = [`${images.name.length} images`];
    if (categories > 1) parts.push(`${categories} categories`);
    parts.push(`protocol ${data.protocol}`, `vnlem ${data.provenance.vnlem}`, data.provenance.started.slice(0, 10));
    find("lead").textContent = parts.join(" · ");
  }

  function control(id, entries) {
    const select = find(id);
    const fill = () => {
      select.replaceChildren(...entries().map(([value, text]) => el("option", { value, selected: value === state[id] }, text)));
    };
    fill();
    select.addEventListener("change", () => set({ [id]: select.value }));
    on([id], fill);
  }

  function controls() {
    control("case", () => data.cases.map((entry) => [entry.name, entry.title]));
    find("case-label").hidden = data.cases.length < 2;
    control("measure", () => [...currentCase().measures, "seconds"].map((name) => [name, measureOf(name).heading]));
    control("method", () => methods.slice(1).map((label) => [label, label]));
    control("against", () => methods.map((label) => [label, label]));
    control("sort", () => Object.entries(SORTS).map(([key, [title]]) => [key, title]));
    control("category", () => [["", "all"], ...[...new Set(images.category)].sort().map((name) => [name, name])]);
    const name = () => document.querySelectorAll(".measure-name").forEach((span) => (span.textContent = measureOf().heading));
    on(["measure"], name);
    name();
  }

  function theme() {
    const button = find("theme");
    const system = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
    const name = () => (button.textContent = isDark() ? "Light" : "Dark");
    button.addEventListener("click", () => {
      document.documentElement.dataset.theme = isDark() ? "light" : "dark";
      name();
    });
    system.addEventListener("change", name);
    name();
  }

  function redrawOnResize() {
    let width = innerWidth, waiting = 0;
    addEventListener("resize", () => {
      if (innerWidth === width) return;
      width = innerWidth;
      clearTimeout(waiting);
      waiting = setTimeout(bench.drawCharts, 150);
    });
  }

  const linked = readAddress();
  describe();
  controls();
  theme();
  bench.drawTables();
  bench.drawGallery();
  bench.drawCharts();
  redrawOnResize();
  addEventListener("hashchange", () => {
    if (readAddress()) find("viewer").scrollIntoView({ block: "center" });
  });
  if (linked) find("viewer").scrollIntoView({ block: "center" });
  document.documentElement.dataset.ready = "true";
})();
