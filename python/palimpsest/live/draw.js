// The pictures: flash, addresses, and two charts, on canvases of the page's width. Ignored: text beside them.

import { FREE, STALE, USER } from "./model.js";

const KIND = 1, BLOCK = 4, STAGE = 6, OTHER = 255;

export function colours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["page", "text", "dim", "line", "accent", "stale", "free", "job0", "job1", "job2", "user", "other",
    "victim"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

export function colourOf(owner, palette) {
  if (owner === USER) return palette.user;
  return owner === OTHER ? palette.other : palette[`job${owner % 3}`];
}

// A context with one unit a CSS pixel.
function prepare(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  const across = Math.round(width * ratio), down = Math.round(height * ratio);
  if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width];
}

function cellAt(context, value, x, y, edge, palette, owners) {
  if (value === FREE) return;
  if (value === STALE) {
    context.fillStyle = palette.stale;
    context.fillRect(x, y, edge, edge);
    if (edge >= 5) {
      context.strokeStyle = palette.page;
      context.beginPath();
      context.moveTo(x, y + edge);
      context.lineTo(x + edge, y);
      context.stroke();
    }
    return;
  }
  context.fillStyle = value < FREE ? palette.dim : colourOf(value, palette);
  context.fillRect(x, y, edge, edge);
  // Marks beside the colour: a point for the user, a bar for the second job.
  if (edge < 5) return;
  context.fillStyle = palette.page;
  if (value === USER) context.fillRect(x + edge / 2 - 1, y + edge / 2 - 1, 2, 2);
  else if (owners > 1 && value === 1) context.fillRect(x + 1, y + edge / 2 - 0.5, edge - 2, 1);
}

// Draws flash; `marked` are cells to outline. Returns nothing.
export function drawFlash(canvas, model, palette, { marked, pulse, owners }) {
  const { shape } = model;
  const pages = shape.pages_per_block, width = shape.subpages_per_page;
  const gap = 6, head = 18, foot = 15;
  const room = canvas.clientWidth || 300;
  const planes = shape.die_of_plane.length, blocks = shape.blocks_per_plane;
  // The widest rows whose cells are large enough.
  let perRow = blocks, edge = 0;
  for (; perRow >= 4; perRow = Math.ceil(perRow / 2)) {
    edge = Math.floor((room - perRow * gap) / (perRow * width));
    if (edge >= 5 || perRow <= 8) break;
  }
  edge = Math.max(2, Math.min(edge, 12, Math.floor(200 / pages)));
  const blockWidth = edge * width, blockHeight = edge * pages, text = blockWidth + gap >= 26;
  const rowHeight = blockHeight + (text ? foot : 5) + 4, rows = Math.ceil(blocks / perRow);
  const perPlane = head + rows * rowHeight;
  const planeWidth = perRow * (blockWidth + gap) + 16;
  const columns = Math.max(1, Math.min(planes, Math.floor((room + 16) / planeWidth)));
  const [context] = prepare(canvas, Math.ceil(planes / columns) * perPlane);
  context.font = "11px system-ui, sans-serif";
  for (let plane = 0; plane < planes; plane++) {
    const left = (plane % columns) * planeWidth, top = Math.floor(plane / columns) * perPlane;
    const die = shape.die_of_plane[plane];
    context.fillStyle = palette.dim;
    const part = planes > shape.dies ? `, plane ${plane}` : "";
    context.fillText(`channel ${shape.channel_of_die[die]}, die ${die}${part}`, left, top + 12);
    for (let at = 0; at < blocks; at++) {
      const block = plane * blocks + at;
      const x = left + (at % perRow) * (blockWidth + gap) + 2;
      const y = top + head + Math.floor(at / perRow) * rowHeight;
      drawBlock(context, model, palette, { block, x, y, edge, marked, pulse, owners, text });
    }
  }
}

function drawBlock(context, model, palette, { block, x, y, edge, marked, pulse, owners, text }) {
  const { pages_per_block: pages, subpages_per_page: width } = model.shape;
  const { view } = model, high = edge * pages, wide = edge * width;
  context.lineWidth = 1;
  context.fillStyle = palette.free;
  context.fillRect(x, y, wide, high);
  for (let page = 0; page < pages; page++) {
    const number = block * pages + page, operation = model.busy.get(number);
    for (let each = 0; each < width; each++) {
      const cell = number * width + each;
      cellAt(context, model.cells[cell], x + each * edge, y + page * edge, edge - (edge > 4 ? 1 : 0), palette, owners);
      if (marked.has(cell)) {
        context.strokeStyle = palette.text;
        context.lineWidth = 2;
        context.strokeRect(x + each * edge, y + page * edge, edge - 1, edge - 1);
        context.lineWidth = 1;
      }
    }
    if (view.programs[number] > 1 && model.cells[number * width] !== FREE) {
      context.fillStyle = palette.text;
      context.fillRect(x - 4, y + page * edge, 4, edge - 1);
    }
    if (operation) drawOperation(context, operation, palette, { x, y: y + page * edge, wide, edge, pulse });
  }
  const isVictim = model.victims.has(block), erase = model.erasing.get(block);
  const last = view.programs[(block + 1) * pages - 1] > 0, any = view.programs[block * pages] > 0;
  context.strokeStyle = isVictim ? palette.victim : any && !last ? palette.accent : palette.line;
  context.lineWidth = isVictim || (any && !last) ? 2 : 1;
  if (erase) context.setLineDash([4, 3]);
  context.strokeRect(x - 1, y - 1, wide + 2, high + 2);
  context.setLineDash([]);
  if (erase && erase[STAGE] === "works") {
    context.globalAlpha = 0.25 + 0.35 * pulse;
    context.fillStyle = palette.victim;
    context.fillRect(x, y, wide, high);
    context.globalAlpha = 1;
  }
  if (view.bad[block]) {
    context.strokeStyle = palette.victim;
    context.strokeRect(x + 2, y + 2, wide - 4, high - 4);
  }
  if (text) {
    context.fillStyle = isVictim ? palette.victim : palette.dim;
    context.font = "10px system-ui, sans-serif";
    const valid = view.valid && any ? `${view.valid[block]}v ` : "";
    const label = wide >= 34 ? `${valid}${view.erases[block]}e` : `${view.erases[block]}e`;
    context.fillText(label, x - 1, y + high + 11);
  }
}

function drawOperation(context, operation, palette, { x, y, wide, edge, pulse }) {
  const works = operation[STAGE] === "works", moves = operation[STAGE] === "moves";
  const isProgram = operation[KIND] === "program";
  context.strokeStyle = isProgram ? palette.accent : palette.text;
  context.lineWidth = works ? 2 : 1;
  if (!works && !moves) context.setLineDash([2, 2]);
  context.strokeRect(x + 0.5, y + 0.5, wide - 1.5, Math.max(1, edge - 2));
  context.setLineDash([]);
  context.lineWidth = 1;
  if (works) {
    context.globalAlpha = 0.2 + 0.6 * pulse;
    context.fillStyle = isProgram ? palette.accent : palette.text;
    context.fillRect(x, y, wide, Math.max(1, edge - 1));
    context.globalAlpha = 1;
  }
}

// The grid of addresses at the canvas's width: units of the map, several in a cell if there are many.
export function grid(canvas, shape) {
  const units = Math.floor(shape.bytes / shape.unit_bytes);
  const width = canvas.clientWidth || 300, edge = units > 3000 ? 7 : 10;
  const columns = Math.max(8, Math.floor(width / edge)), rows = Math.ceil(units / columns);
  return { units, edge, columns, rows };
}

export function drawAddresses(canvas, model, palette, { cursor, owners, isFocused }) {
  const { shape, view } = model;
  const { units, edge, columns, rows } = grid(canvas, shape);
  const [context] = prepare(canvas, rows * edge + 2);
  const width = shape.unit_bytes / shape.subpage_bytes;
  const live = new Map();
  view.host?.forEach((owner, subpage) => {
    if (owner >= 0) live.set(Math.floor(subpage / width), owner);
  });
  // A file system places the data of the host at other addresses of flash.
  if (!view.host) {
    view.logical.forEach((logical, cell) => {
      if (logical >= 0 && view.cells[cell] >= 0) live.set(Math.floor(logical / width), view.cells[cell]);
    });
  }
  for (let unit = 0; unit < units; unit++) {
    const x = (unit % columns) * edge + 1, y = Math.floor(unit / columns) * edge + 1;
    context.fillStyle = palette.free;
    context.fillRect(x, y, edge - 1, edge - 1);
    context.strokeStyle = palette.line;
    context.strokeRect(x + 0.5, y + 0.5, edge - 2, edge - 2);
    if (live.has(unit)) cellAt(context, live.get(unit), x, y, edge - 1, palette, owners);
  }
  if (cursor === null) return;
  context.strokeStyle = palette.text;
  context.lineWidth = isFocused ? 3 : 2;
  context.strokeRect((cursor % columns) * edge, Math.floor(cursor / columns) * edge, edge + 1, edge + 1);
  context.lineWidth = 1;
}

function axes(context, palette, width, height, labels) {
  context.strokeStyle = palette.line;
  context.fillStyle = palette.dim;
  context.font = "11px system-ui, sans-serif";
  for (const [y, label] of labels) {
    context.beginPath();
    context.moveTo(46, y);
    context.lineTo(width, y);
    context.stroke();
    context.fillText(label, 0, Math.min(Math.max(y + 4, 10), height - 2));
  }
}

export function drawAmplification(canvas, points, palette) {
  const height = 120, [context, width] = prepare(canvas, height);
  const most = Math.max(2, ...points.map((point) => point.value)), end = Math.max(1, points.at(-1)?.requests ?? 1);
  const y = (value) => height - 6 - ((height - 16) * value) / most;
  const marks = most > 6 ? [1, most] : [0, 1, most];
  axes(context, palette, width, height, marks.map((value) => [y(value), `${+value.toFixed(1)}`]));
  if (!points.length) context.fillText("No write yet.", 52, height / 2);
  context.strokeStyle = palette.accent;
  context.lineWidth = 2;
  context.beginPath();
  points.forEach((point, at) => {
    const x = 46 + ((width - 50) * point.requests) / end;
    at ? context.lineTo(x, y(point.value)) : context.moveTo(x, y(point.value));
  });
  context.stroke();
  context.lineWidth = 1;
}

export function drawLatencies(canvas, latencies, palette) {
  const height = 120, [context, width] = prepare(canvas, height);
  const low = 3, high = 9, share = (ns) => (Math.log10(Math.max(ns, 1e3)) - low) / (high - low);
  const y = (ns) => height - 6 - (height - 16) * share(ns);
  const marks = [["1 µs", 1e3], ["1 ms", 1e6], ["1 s", 1e9]];
  axes(context, palette, width, height, marks.map(([label, ns]) => [y(ns), label]));
  const across = Math.max(latencies.length, 60);
  latencies.forEach(({ kind, ns }, at) => {
    context.fillStyle = kind === "read" ? palette.job1 : palette.job0;
    context.fillRect(46 + ((width - 50) * at) / across, y(ns) - 1.5, 3, 3);
  });
}
