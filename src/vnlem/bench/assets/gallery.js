// The gallery: thumbnails in order, and one image with its wipe, errors and measures; the extremes.
"use strict";
(() => {
  const { data, images, methods, ours, state, set, on, indexOf, currentCase, pictures, value, gain, better, measureOf, format, signed, pictureOf, thumbnailOf, el, fill } = bench;
  const EXTREMES = 4;
  const grid = document.getElementById("thumbnails");
  let shown = []; // indices of the images, in the order of the thumbnails
  let wipeAt = 50;

  const SORTS = {
    "gain-down": ["largest gain first", (index) => -(gain(index) ?? -Infinity)],
    "gain-up": ["smallest gain first", (index) => gain(index) ?? Infinity],
    "value-down": ["best first", (index) => -(value(index, state.method) ?? -Infinity * better()) * better()],
    "value-up": ["worst first", (index) => (value(index, state.method) ?? Infinity * better()) * better()],
    name: ["name", (index) => index],
  };

  // `src` comes last: a browser that sees it before `loading` fetches the file at once.
  const lazyImage = (src, size = {}) => el("img", { loading: "lazy", decoding: "async", alt: "", ...size, src });

  function thumbnail(index, number, label) {
    const name = images.name[index];
    const picture = data.hasPictures ? [lazyImage(thumbnailOf(index), { width: 92, height: 92 })] : [];
    return el("button", { type: "button", className: "thumbnail", title: name, "aria-label": `${name}, ${label} ${signed(number)}`, "data-image": name },
      ...picture, el("span", {}, name.split("/").pop()), el("span", { className: number > 0 ? "good" : number < 0 ? "bad" : "" }, signed(number)));
  }

  function drawThumbnails() {
    const key = (SORTS[state.sort] ?? SORTS.name)[1];
    shown = d3.range(images.name.length).filter((index) => !state.category || images.category[index] === state.category);
    const keys = new Map(shown.map((index) => [index, key(index)]));
    shown.sort((a, b) => keys.get(a) - keys.get(b) || a - b);
    const buttons = shown.map((index) => {
      const button = thumbnail(index, gain(index), `gain of ${state.method}`);
      button.setAttribute("role", "option");
      return button;
    });
    grid.replaceChildren(...buttons);
    document.getElementById("count").textContent = `${shown.length} images; gain of ${state.method} over ${state.against}, ${measureOf().heading}`;
    markSelected(false);
  }

  // One thumbnail is in the tab order; arrows walk to the others.
  function markSelected(scroll) {
    const place = Math.max(0, shown.indexOf(indexOf.get(state.image)));
    grid.querySelectorAll("[tabindex='0'], [aria-selected='true']").forEach((button) => {
      button.setAttribute("aria-selected", "false");
      button.tabIndex = -1;
    });
    for (const button of grid.children) if (button.tabIndex !== -1) button.tabIndex = -1;
    const button = grid.children[place];
    if (!button) return;
    button.tabIndex = 0;
    if (button.dataset.image !== state.image) return;
    button.setAttribute("aria-selected", "true");
    if (scroll) {
      const top = button.offsetTop - grid.offsetTop;
      if (top < grid.scrollTop || top + button.offsetHeight > grid.scrollTop + grid.clientHeight) grid.scrollTop = top - grid.clientHeight / 3;
    }
  }

  grid.addEventListener("click", (event) => {
    const button = event.target.closest(".thumbnail");
    if (button) set({ image: button.dataset.image });
  });
  grid.addEventListener("keydown", (event) => {
    const place = [...grid.children].indexOf(document.activeElement);
    if (place < 0) return;
    const perRow = getComputedStyle(grid).gridTemplateColumns.split(" ").length;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: perRow, ArrowUp: -perRow, Home: -place, End: grid.children.length - 1 - place };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = Math.min(grid.children.length - 1, Math.max(0, place + steps[event.key]));
    set({ image: grid.children[next].dataset.image });
    grid.children[next].focus();
  });

  function step(by) {
    const place = shown.indexOf(indexOf.get(state.image));
    const next = shown[Math.min(shown.length - 1, Math.max(0, place + by))];
    if (next != null) set({ image: images.name[next] });
  }

  function choice(name, label) {
    const options = pictures().map((what) => el("option", { value: what, selected: what === state[name] }, what));
    return el("label", {}, label, el("select", { id: name, onchange: (event) => set({ [name]: event.target.value }) }, ...options));
  }

  function drawViewer() {
    const index = indexOf.get(state.image);
    const focused = document.activeElement?.id;
    const head = [
      el("h3", {}, images.name[index]),
      el("div", { className: "bar" },
        el("button", { type: "button", id: "previous", "aria-label": "Image before", onclick: () => step(-1) }, "‹"),
        el("button", { type: "button", id: "next", "aria-label": "Next image", onclick: () => step(1) }, "›"),
        ...(data.hasPictures ? [choice("left", "left"), choice("right", "right")] : [])),
    ];
    const left = el("div", {}, ...head, data.hasPictures ? wipe(index) : el("p", { className: "note" }, "The run kept no pictures (--no-pictures)."));
    const right = el("div", {}, ...(data.hasPictures ? errors(index) : []), measures(index));
    fill("viewer", left, right);
    if (["left", "right", "previous", "next", "wipe"].includes(focused)) document.getElementById(focused)?.focus({ preventScroll: true });
  }

  function wipe(index) {
    const [height, width] = currentCase().size[index] ?? [1, 1];
    const picture = (what, className) => el("img", { className, src: pictureOf(index, what), alt: what, width, height, draggable: false });
    const slider = el("input", { type: "range", id: "wipe", min: 0, max: 100, step: 1, value: wipeAt, "aria-label": `Wipe between ${state.left} and ${state.right}` });
    const figure = el("figure", { className: "wipe" }, picture(state.right, "right"), picture(state.left, "left"),
      el("span", { className: "name l" }, state.left), el("span", { className: "name r" }, state.right), el("div", { className: "edge" }), slider);
    const move = () => {
      wipeAt = Number(slider.value);
      figure.style.setProperty("--at", `${wipeAt}%`);
    };
    slider.addEventListener("input", move);
    move();
    return figure;
  }

  function errors(index) {
    const limit = currentCase().errorLimit[index] ?? 50;
    const base = data.hasReference ? "clean" : methods[0];
    const tiles = (data.hasReference ? methods : ours).filter((what) => value(index, what, currentCase().measures[0]) != null).map((what) => {
      const [over, under] = data.hasReference ? [base, what] : [what, base];
      const image = el("div", { className: "error", style: `--contrast: ${255 / limit}` },
        lazyImage(pictureOf(index, under)), lazyImage(pictureOf(index, over)));
      return el("button", { type: "button", "aria-pressed": String(state.right === what), title: `Show ${what} on the right`, onclick: () => set({ right: what }) }, image, el("span", { className: "caption" }, what));
    });
    const scale = `${data.hasReference ? "Errors" : "What was removed"}: black −${limit.toFixed(0)}, white +${limit.toFixed(0)} of 255`;
    return [el("h3", {}, scale), el("div", { className: "errors" }, ...tiles)];
  }

  function measures(index) {
    const names = [...currentCase().measures, "seconds"];
    const rows = names.map((name) => {
      const numbers = ours.map((method) => value(index, method, name)).filter((number) => number != null);
      const direction = measureOf(name).direction;
      const best = direction && numbers.length > 1 ? (direction > 0 ? Math.max(...numbers) : Math.min(...numbers)) : null;
      const cells = methods.map((method) => {
        const number = value(index, method, name);
        return el("td", { className: method !== methods[0] && best != null && number === best ? "best" : "" }, format(number, name));
      });
      return el("tr", {}, el("th", { scope: "row" }, measureOf(name).heading.replace(/ \(.*\)/, name === "psnr_paper" ? " (paper)" : "")), ...cells);
    });
    const head = el("tr", {}, el("th", {}), ...methods.map((label) => el("th", { scope: "col" }, label)));
    return el("div", { className: "scroll", id: "image-measures", tabIndex: 0, role: "region", "aria-label": "Measures of this image" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)));
  }

  function drawExtremes() {
    const section = document.getElementById("extremes");
    section.hidden = ours.length < 2 || measureOf().direction === 0;
    if (section.hidden) return;
    const blocks = ours.map((method) => {
      const others = ours.filter((label) => label !== method);
      const margins = d3.range(images.name.length).map((index) => {
        const gains = others.map((other) => gain(index, method, other)).filter((number) => number != null);
        return [index, gains.length ? Math.min(...gains) : null];
      }).filter(([, margin]) => margin != null).sort((a, b) => b[1] - a[1]);
      const row = (entries) => el("div", { className: "thumbnails" }, ...entries.map(([index, margin]) => thumbnail(index, margin, "margin")));
      const losses = margins.slice(-EXTREMES).reverse();
      return el("div", {}, el("h3", {}, `${method}: its best images`), row(margins.slice(0, EXTREMES)), el("h3", {}, `${method}: its worst images`), row(losses));
    });
    fill("extremes-list", el("div", { className: "winners" }, ...blocks));
  }
  document.getElementById("extremes-list").addEventListener("click", (event) => {
    const button = event.target.closest(".thumbnail");
    if (!button) return;
    set({ image: button.dataset.image });
    document.getElementById("viewer").scrollIntoView({ block: "center" });
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select")) return;
    const number = Number(event.key);
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (number >= 1 && pictures()[number - 1]) set({ right: pictures()[number - 1] });
  });

  on(["case", "measure", "method", "against", "sort", "category"], drawThumbnails);
  on(["case", "image", "left", "right"], drawViewer);
  on(["image"], () => markSelected(true));
  on(["case", "measure"], drawExtremes);
  bench.SORTS = SORTS;
  bench.drawGallery = () => {
    drawThumbnails();
    drawViewer();
    drawExtremes();
    markSelected(true);
  };
})();
