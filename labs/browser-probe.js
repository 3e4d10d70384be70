"use strict";
// Added to a copy of a page, with axe and the window's size and colours before it: opens all parts,
// and writes what is wrong into the page itself, from where the test reads it.
const wrong = [];
addEventListener("error", (event) => wrong.push(`error: ${event.message}`));
addEventListener("unhandledrejection", (event) => wrong.push(`rejected: ${event.reason}`));
addEventListener("securitypolicyviolation", (event) =>
  wrong.push(`refused by the policy: ${event.violatedDirective} ${event.blockedURI}`));

// Boxes of all text that is shown, a box for each line.
const boxes = () => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    const named = /^(script|style|title)$/i.test(parent.tagName);
    if (named || !node.data.trim() || !parent.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width > 0 && box.height > 0) found.push({ box, node });
    }
  }
  return found;
};

// Pairs of boxes that share more than the rounding of a pixel.
const overlaps = (found) => {
  const pairs = [];
  found.sort((one, other) => one.box.top - other.box.top);
  for (let first = 0; first < found.length; first += 1) {
    const one = found[first].box;
    for (let next = first + 1; next < found.length; next += 1) {
      const other = found[next].box;
      if (other.top >= one.bottom) break;
      const width = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const height = Math.min(one.bottom, other.bottom) - other.top;
      if (width > 1 && height > 1) {
        pairs.push(`${found[first].node.data.trim()} | ${found[next].node.data.trim()}`);
      }
    }
  }
  return pairs;
};

// The window is the one that was asked for.
const checkWindow = () => {
  if (innerWidth !== WINDOW.width) wrong.push(`the window is ${innerWidth} pixels wide`);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  if (dark !== WINDOW.dark) wrong.push("the colours are not those that were asked for");
};

// Whatever does something has its place among the stops of the Tab key, and is marked there.
const checkKeyboard = () => {
  document.querySelectorAll("button, summary, a[href]").forEach((control) => {
    if (control.disabled || !control.checkVisibility()) return;
    control.focus({ focusVisible: true });
    const name = control.textContent.trim();
    if (document.activeElement !== control) wrong.push(`the keyboard does not reach: ${name}`);
    if (getComputedStyle(control).outlineStyle === "none") wrong.push(`no mark of focus: ${name}`);
  });
};

// Marks of a drawing have tooltips, and the pointer over a time line is told its time.
const checkTooltips = () => {
  document.querySelectorAll("svg title").forEach((tip) => {
    if (!tip.textContent.trim()) wrong.push("an empty tooltip");
  });
  document.querySelectorAll(".zoomable").forEach((figure) => {
    const plot = figure.querySelector(".plot");
    if (!plot.querySelector("title")) wrong.push("a time line without tooltips");
    const box = plot.getBoundingClientRect();
    const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
    plot.dispatchEvent(new PointerEvent("pointermove", { ...at, bubbles: true }));
    const told = figure.querySelector(".readout").textContent;
    if (!/^\d+\.\d{4} s: .+ Mbit\/s$/.test(told)) wrong.push(`the read-out says ${told}`);
  });
};

addEventListener("load", async () => {
  checkWindow();
  document.querySelectorAll("details").forEach((part) => { part.open = true; });
  const texts = boxes();
  if (texts.length < 50) wrong.push(`only ${texts.length} boxes of text`);
  overlaps(texts).slice(0, 20).forEach((pair) => wrong.push(`texts overlap: ${pair}`));
  const across = document.documentElement.scrollWidth - innerWidth;
  if (across > 0) wrong.push(`the page is ${across} pixels wider than the window`);
  const buttons = [...document.querySelectorAll(".tools button")];
  buttons.filter((button) => button.textContent === "Zoom in").forEach((button) => {
    button.click();
    const view = button.closest("figure").querySelector(".plot").viewBox.baseVal;
    if (!(view.x > 0)) wrong.push("a time line was not zoomed");
  });
  overlaps(boxes()).slice(0, 20).forEach((pair) => wrong.push(`zoomed texts overlap: ${pair}`));
  buttons.filter((button) => button.textContent === "All").forEach((button) => button.click());
  checkKeyboard();
  checkTooltips();
  const { violations, passes } = await axe.run(document, { resultTypes: ["violations"] });
  if (passes.length < 10) wrong.push(`axe looked at ${passes.length} rules only`);
  for (const { id, nodes } of violations) {
    nodes.slice(0, 5).forEach(({ html, failureSummary }) =>
      wrong.push(`axe ${id}: ${html.slice(0, 200)}: ${failureSummary}`));
  }
  document.body.replaceChildren();
  document.body.setAttribute("data-wrong", JSON.stringify(wrong));
});
