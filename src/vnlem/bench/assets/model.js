// The data of the run, what the page shows of them, and the address that records it.
"use strict";
window.bench = (() => {
  const data = window.VNLEM_BENCH;
  const images = data.images;
  const methods = data.methods.map((method) => method.label);
  const ours = methods.slice(1); // the first is the noisy image itself
  const fileOf = new Map(data.methods.map((method) => [method.label, method.file]));
  const indexOf = new Map(images.name.map((name, index) => [name, index]));
  const caseNames = data.cases.map((entry) => entry.name);

  const state = {
    case: caseNames[0],
    measure: data.hasReference ? (data.protocol === "awgn" ? "psnr" : "snr") : "fsim_input",
    method: ours[ours.length - 1],
    against: ours.length > 1 ? ours[0] : methods[0],
    sort: "gain-down",
    category: "",
    image: images.name[0],
    left: data.hasReference ? "clean" : methods[0],
    right: ours[ours.length - 1],
  };
  const defaults = { ...state };
  const listeners = [];

  const currentCase = () => data.cases[caseNames.indexOf(state.case)];
  const pictures = () => (data.hasReference ? ["clean", ...methods] : methods);

  function isValid(key, value) {
    if (key === "case") return caseNames.includes(value);
    if (key === "measure") return currentCase().measures.includes(value) || value === "seconds";
    if (key === "method" || key === "against") return methods.includes(value);
    if (key === "image") return indexOf.has(value);
    if (key === "left" || key === "right") return pictures().includes(value);
    return key in state;
  }

  // Change what is shown; every section that depends on a changed key draws itself again.
  function set(changes, { address = true } = {}) {
    const changed = Object.keys(changes).filter((key) => state[key] !== changes[key]);
    Object.assign(state, changes);
    if (address) writeAddress();
    if (changed.length) for (const [keys, listener] of listeners) if (keys.some((key) => changed.includes(key))) listener();
  }

  function on(keys, listener) {
    listeners.push([keys, listener]);
  }

  function writeAddress() {
    const parts = Object.keys(state).filter((key) => key === "image" || state[key] !== defaults[key]);
    const text = parts.map((key) => `${key}=${encodeURIComponent(state[key])}`).join("&");
    try {
      history.replaceState(null, "", `#${text}`);
    } catch {
      // Some browsers limit how often a page from the disk may change its address.
    }
  }

  // True if the address names something to show.
  function readAddress() {
    const text = location.hash.slice(1);
    if (!text.includes("=")) return false;
    const wanted = { ...defaults };
    for (const part of text.split("&")) {
      const [key, ...rest] = part.split("=");
      let value;
      try {
        value = decodeURIComponent(rest.join("="));
      } catch {
        continue;
      }
      if (key in state && isValid(key, value)) wanted[key] = value;
    }
    set(wanted, { address: false });
    return /(^|&)image=/.test(text);
  }

  const value = (index, method, measure = state.measure) => currentCase().values[method][measure][index];
  const measureOf = (name = state.measure) => data.measures[name];
  const better = () => measureOf().direction || 1;

  function gain(index, method = state.method, against = state.against) {
    const a = value(index, method), b = value(index, against);
    return a == null || b == null ? null : (a - b) * better();
  }

  function format(number, name = state.measure) {
    if (number == null) return "–";
    const { factor, digits } = measureOf(name);
    return (number * factor).toFixed(digits);
  }

  function signed(number, name = state.measure) {
    return number == null ? "–" : (number > 0 ? "+" : "") + format(number, name).replace("-", "−");
  }

  function formatP(p) {
    if (p == null) return "–";
    return p < 1e-4 ? p.toExponential(0).replace("e-", "e−") : p.toFixed(4);
  }

  const pictureOf = (index, what) =>
    `pictures/${images.key[index]}/${state.case}-${fileOf.get(what) ?? what}.png`;
  const thumbnailOf = (index) => `pictures/${images.key[index]}/thumbnail.jpg`;

  // An element with properties and children; text never becomes markup.
  function el(name, properties = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, content] of Object.entries(properties)) {
      if (content == null) continue;
      if (key in element && !key.startsWith("aria")) element[key] = content;
      else element.setAttribute(key, content);
    }
    element.append(...children);
    return element;
  }

  function fill(id, ...children) {
    document.getElementById(id).replaceChildren(...children);
  }

  return { data, images, methods, ours, indexOf, state, set, on, readAddress, currentCase, pictures, value, gain, better,
    measureOf, format, signed, formatP, pictureOf, thumbnailOf, el, fill };
})();
