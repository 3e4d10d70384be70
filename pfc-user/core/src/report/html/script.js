"use strict";
// Zoom and read-out of time lines. Without a script they are whole, with a tooltip for each mark.
// Neither "less than" nor "and" signs, so that the page is well-formed XML too.
const NS = "http://www.w3.org/2000/svg";
const put = (element, values) => Object.entries(values)
  .forEach(([name, value]) => element.setAttribute(name, value));

const step = (span) => {
  const power = 10 ** Math.floor(Math.log10(span / 8));
  return [1, 2, 5, 10].map((factor) => factor * power).find((found) => found >= span / 8);
};

// The value of a step line at x, as a share of its height.
const level = (path, x) => {
  let found = 100;
  const start = /^M0 (\d+)/.exec(path);
  if (start) found = +start[1];
  for (const [, at, y] of path.matchAll(/H([\d.]+)V(\d+)/g)) {
    if (+at > x) break;
    found = +y;
  }
  return 1 - found / 100;
};

for (const figure of document.querySelectorAll(".zoomable")) {
  const svg = figure.querySelector(".timeline");
  const plot = svg.querySelector(".plot");
  const axis = svg.querySelector(".axis");
  const { left, width, span } = Object.fromEntries(
    Object.entries(svg.dataset).map(([name, value]) => [name, +value]));
  const height = plot.viewBox.baseVal.height;
  const whole = axis.innerHTML;
  let from = 0;
  let to = span;

  const show = (start, length) => {
    length = Math.min(span, Math.max(span / 1000, length));
    from = Math.max(0, Math.min(span - length, start));
    to = from + length;
    const scale = width / length;
    put(plot, { viewBox: `${from / span * width} 0 ${length / span * width} ${height}` });
    for (const label of svg.querySelectorAll("[data-from]")) {
      const begin = Math.max(from, +label.dataset.from);
      const end = Math.min(to, +label.dataset.to);
      const fits = (end - begin) * scale > label.textContent.length * 6.6;
      label.style.display = fits ? "" : "none";
      put(label, { x: left + ((begin + end) / 2 - from) * scale });
    }
    if (length === span) {
      axis.innerHTML = whole;
    } else {
      axis.replaceChildren();
      const every = step(length);
      const decimals = Math.max(0, -Math.floor(Math.log10(every)));
      for (let at = Math.ceil(from / every) * every; to >= at; at += every) {
        const x = (at - from) * scale;
        if (20 > x || x > width - 20) continue;
        const text = document.createElementNS(NS, "text");
        put(text, { x: left + x, y: height + 14, "text-anchor": "middle" });
        text.textContent = `${at.toFixed(decimals)} s`;
        axis.append(text);
      }
    }
    buttons.forEach(([button, , off]) => { button.disabled = off(); });
  };
  const zoom = (factor, at = (from + to) / 2) =>
    show(at - (at - from) * factor, (to - from) * factor);
  const move = (share) => show(from + (to - from) * share, to - from);

  const tools = document.createElement("div");
  tools.className = "tools";
  const buttons = [
    ["Zoom in", () => zoom(0.5), () => span / 1000 >= to - from],
    ["Zoom out", () => zoom(2), () => to - from >= span],
    ["Earlier", () => move(-0.5), () => 0 >= from],
    ["Later", () => move(0.5), () => to >= span],
    ["All", () => show(0, span), () => to - from >= span],
  ].map(([name, work, off]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", work);
    tools.append(button);
    return [button, work, off];
  });
  const readout = document.createElement("p");
  readout.className = "readout";
  figure.prepend(tools);
  figure.querySelector(".scroll").after(readout);
  show(0, span);

  const timeAt = (event) => {
    const box = plot.getScreenCTM();
    const x = (event.clientX - box.e) / box.a;
    return x * span / width;
  };
  plot.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event));
  }, { passive: false });
  plot.addEventListener("pointermove", (event) => {
    const time = timeAt(event);
    const at = time / span * width;
    const rates = [...plot.querySelectorAll("[data-lane]")].map((path) => {
      const rate = level(path.getAttribute("d"), at) * +path.dataset.peak;
      return [path.dataset.lane, rate];
    }).filter(([, rate]) => rate > 0);
    const told = rates.map(([lane, rate]) => `${lane} ${rate.toFixed(1)}`).join(", ");
    readout.textContent = `${time.toFixed(4)} s: ${told || "nothing"} Mbit/s`;
  });
}

// A link leads into a closed part.
const open = () => {
  const target = document.getElementById(location.hash.slice(1));
  for (let part = target; part; part = part.parentElement) {
    if (part.tagName === "DETAILS") part.open = true;
  }
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", open);
if (location.hash) open();
