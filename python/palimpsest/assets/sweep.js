/* The page of a sweep: a sentence on the best point, and any figure over any axes, chosen by the reader and kept in the address.
   Runs behind report.js, whose colours and layout it uses. */
const sweep = report.sweep;
const NONE = "", ALL = "all";
const axisOf = name => sweep.axes.findIndex(axis => axis.name === name);
const state = {figure: NONE, x: NONE, colour: NONE, facet: NONE, kind: "lines", scale: "linear", ...sweep.shown};
for (const [key, value] of new URLSearchParams(location.hash.slice(1))) state[key] = value;

/* Units: the largest that leaves a number of at least one. */
const SCALES = {
  ns: [[1, "ns"], [1e3, "us"], [1e6, "ms"], [1e9, "s"]],
  s: [[1, "s"]],
  bytes: [[1, "B"], [2 ** 10, "KiB"], [2 ** 20, "MiB"], [2 ** 30, "GiB"], [2 ** 40, "TiB"]],
  bytes_per_s: [[1, "B/s"], [1e3, "kB/s"], [1e6, "MB/s"], [1e9, "GB/s"]],
  uJ: [[1, "uJ"], [1e3, "mJ"], [1e6, "J"]],
};
function scaleFor(unit, values) {
  const most = Math.max(0, ...values.map(Math.abs));
  return (SCALES[unit] || [[1, unit]]).filter(([factor], index) => index === 0 || most >= factor).at(-1);
}

function quantity(unit, value) {
  const [factor, name] = scaleFor(unit, [value]);
  return `${Number((value / factor).toPrecision(3)).toLocaleString("en")}${name && ` ${name}`}`;
}

/* The best and the worst configuration by a figure; seeds are averaged. */
function extremes(figure) {
  const kept = sweep.axes.map((axis, index) => axis.name === "seed" ? -1 : index).filter(index => index >= 0);
  const groups = new Map();
  sweep.points.forEach((point, row) => {
    if (figure.values[row] === null) return;
    const key = kept.map(index => point[index]).join();
    groups.set(key, [...(groups.get(key) || []), row]);
  });
  const means = [...groups.values()].map(rows => [rows.reduce((sum, row) => sum + figure.values[row], 0) / rows.length, rows[0]]);
  means.sort(([one], [two]) => figure.better === "high" ? two - one : one - two);
  const where = row => kept.filter(index => sweep.axes[index].labels.length > 1 && sweep.points[row][index] !== null)
    .map(index => `${plain(sweep.axes[index].words)} ${sweep.axes[index].labels[sweep.points[row][index]]}`).join(", ");
  return means.map(([value, row]) => ({value, text: quantity(figure.unit, value), where: where(row)}));
}
const plain = words => words.replace(/ \(.*\)$/, "");
function answer(figure) {
  const found = extremes(figure);
  if (!found.length) return "No point has this figure.";
  const [first, last] = [found[0], found.at(-1)], name = figure.label[0].toUpperCase() + figure.label.slice(1);
  if (first.text === last.text) return `${name} is ${first.text} at every point.`;
  const alike = found.filter(each => each.text === first.text).length - 1;
  const [best, worst] = figure.better === "high" ? ["highest", "lowest"] : ["lowest", "highest"];
  return `${name} is ${best}, ${first.text}, with ${first.where}${alike ? ` and ${alike} more alike` : ""}; `
    + `it is ${worst}, ${last.text}, with ${last.where}.`;
}

function select(key, title, options, wide) {
  if (!options.some(([value]) => value === state[key])) state[key] = options[0]?.[0] ?? NONE;
  const label = document.createElement("label"), field = document.createElement("select");
  label.textContent = title;
  if (wide) label.className = "figure";
  field.name = key;
  for (const [value, text] of options) field.add(new Option(text, value, false, value === state[key]));
  field.addEventListener("change", () => { state[key] = field.value; show(); });
  label.append(field);
  return label;
}

/* Whether points with equal values of the drawn axes differ in an axis. */
function isFree(axis) {
  const drawn = [state.x, state.colour, state.facet].map(axisOf), index = sweep.axes.indexOf(axis), seen = new Map();
  if (drawn.includes(index) || axis.labels.length < 2) return false;
  return sweep.points.some(point => {
    const key = drawn.map(at => point[at]).join();
    if (!seen.has(key)) seen.set(key, point[index]);
    return seen.get(key) !== point[index];
  });
}

function controls() {
  const words = axis => axis.words === axis.name ? axis.name : `${plain(axis.words)} - ${axis.name}`;
  const axes = sweep.axes.map(axis => [axis.name, words(axis)]);
  const fields = [
    select("figure", "figure", sweep.figures.map(each => [each.name, each.label === each.name ? each.name : each.label + " - " + each.name]), true),
    select("x", "across", axes),
    select("colour", "colour (heat map: up)", [[NONE, "none"], ...axes]),
    select("facet", "a chart for each", [[NONE, "none"], ...axes]),
    select("kind", "kind", [["lines", "lines or bars"], ["heat", "heat map"]]),
    select("scale", "scale of the figure", [["linear", "linear"], ["log", "logarithmic"]]),
  ];
  /* Every other axis that these do not determine: repetitions are averaged, anything else is held at one value until
     the reader chooses. */
  for (const axis of sweep.axes) {
    if (!isFree(axis)) continue;
    const each = axis.labels.map((label, index) => [String(index), label]);
    const all = [ALL, "mean of all " + axis.labels.length];
    fields.push(select("fix:" + axis.name, plain(axis.words), axis.name === "seed" ? [all, ...each] : [...each, all]));
  }
  const form = document.getElementById("controls");
  const focused = document.activeElement?.name;
  form.replaceChildren(...fields);
  if (focused) form.elements[focused]?.focus();
}

function chosen() {
  const fixed = sweep.axes.map((axis, index) => [index, state["fix:" + axis.name], axis])
    .filter(([, value, axis]) => value !== undefined && value !== ALL && isFree(axis));
  return sweep.points.map((point, row) => row).filter(row => fixed.every(([index, value]) => String(sweep.points[row][index]) === value));
}

/* Points that only differ in the seed, or in the start of a trace, are repeats of one measurement. */
const areRepeats = () => sweep.axes.every(axis => ["seed", "start"].includes(axis.name) || !isFree(axis) || state["fix:" + axis.name] !== ALL);

/* The mean, and the ends of its bar: the 95 % interval of repeats, else the least and the most. */
function average(values) {
  if (!values.length) return null;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length, n = values.length;
  const least = Math.min(...values), most = Math.max(...values);
  if (least === most || !areRepeats()) return {mean, least, most, n};
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const half = Math.sqrt(squares / (n - 1) / n) * (sweep.student[n - 2] ?? sweep.student.at(-1));
  return {mean, least: mean - half, most: mean + half, n};
}

const varies = cell => cell.most > cell.least;

/* Means by facet, colour and x; an axis that is not drawn has one value. */
function gather() {
  const figure = sweep.figures.find(each => each.name === state.figure);
  if (!figure) return null;
  const [x, colour, facet] = [state.x, state.colour === state.x ? NONE : state.colour,
    [state.x, state.colour].includes(state.facet) ? NONE : state.facet].map(axisOf);
  const labels = axis => axis < 0 ? [NONE] : sweep.axes[axis].labels;
  const place = (row, axis) => axis < 0 ? 0 : sweep.points[row][axis];
  const cells = labels(facet).map(() => labels(colour).map(() => labels(x).map(() => [])));
  for (const row of chosen()) {
    const at = [facet, colour, x].map(axis => place(row, axis));
    const value = figure.values[row];
    if (value !== null && at.every(each => each !== null)) cells[at[0]][at[1]][at[2]].push(value);
  }
  const found = cells.map(lines => lines.map(line => line.map(average)));
  const values = found.flat(2).filter(Boolean).flatMap(each => [each.least, each.most]);
  const [factor, unit] = scaleFor(figure.unit, values);
  let best = null;
  found.forEach((lines, facet) => lines.forEach((cells, line) => cells.forEach((cell, x) => {
    const wins = cell && (!best || (figure.better === "high" ? cell.mean > best.mean : cell.mean < best.mean));
    if (figure.better && wins) best = {facet, line, x, mean: cell.mean, cell};
  })));
  return {figure, x, colour, facet, found, best, values: values.map(value => value / factor), factor, unit, labels};
}

function horizontal(axis) {
  if (axis < 0) return {at: [0], layout: {showticklabels: false}, numeric: false};
  const {words, labels, numbers, unit} = sweep.axes[axis];
  const layout = {title: {text: words}, automargin: true};
  if (!numbers) return {at: labels, layout: {...layout, type: "category"}, numeric: false};
  const low = Math.min(...numbers), high = Math.max(...numbers);
  const log = low > 0 && high / low >= 16;
  const fit = apart(numbers.map(number => log ? Math.log10(number) : number));
  if (numbers.length <= 12) Object.assign(layout, {tickvals: fit.map(at => numbers[at]), ticktext: fit.map(at => labels[at])});
  else if (unit) layout.title.text += ` (${unit})`;
  return {at: numbers, layout: {...layout, type: log ? "log" : "linear"}, numeric: true};
}

/* Ticks whose labels have room on a phone. */
function apart(places) {
  const least = (places.at(-1) - places[0]) / (innerWidth < 600 ? 7 : 12), kept = [];
  places.forEach((place, at) => { if (!kept.length || place - places[kept.at(-1)] >= least) kept.push(at); });
  return kept;
}

/* The mark of the best mean that is drawn. */
function star(data, facet, xaxis, log) {
  if (!data.best || data.best.facet !== facet) return [];
  const {x, line, mean} = data.best, lines = data.found[facet].length, {numbers} = data.x < 0 ? {} : sweep.axes[data.x];
  const bar = x + (line - (lines - 1) / 2) * 0.8 / lines, place = numbers && xaxis.type === "log" ? Math.log10(numbers[x]) : numbers?.[x];
  return [{x: place ?? bar, y: log ? Math.log10(mean / data.factor) : mean / data.factor, text: `★ ${quantity(data.figure.unit, mean)}`,
    showarrow: true, arrowhead: 0, ...(numbers ? {ax: x > data.found[facet][line].length / 2 ? -34 : 34,
      ay: data.figure.better === "high" ? -26 : 26} : {ax: 0, ay: -44}), bgcolor: cssColor("--page"), borderpad: 2}];
}
const cssColor = name => getComputedStyle(root).getPropertyValue(name).trim();

const DASHES = ["solid", "dash", "dot", "dashdot"];
function lines(data, facet, range) {
  const {at, layout: xaxis, numeric} = horizontal(data.x);
  const palette = isDark() ? report.dark : report.light;
  const traces = data.found[facet].map((line, index) => {
    const colour = palette[index % palette.length];
    const kept = line.map((cell, place) => [cell, at[place]]).filter(([cell]) => cell);
    /* Equal values have no bar, because one of no length would look like certainty; NaN draws none. */
    const bar = (cell, length) => varies(cell) ? length / data.factor : NaN;
    const spread = kept.some(([cell]) => varies(cell)) ? {error_y: {type: "data", symmetric: false, thickness: 1, width: 3,
      array: kept.map(([cell]) => bar(cell, cell.most - cell.mean)),
      arrayminus: kept.map(([cell]) => bar(cell, cell.mean - cell.least))}} : {};
    const common = {name: data.labels(data.colour)[index], x: kept.map(([, place]) => place),
      y: kept.map(([cell]) => cell.mean / data.factor), ...spread};
    return numeric
      ? {...common, type: "scatter", mode: "lines+markers", line: {color: colour, width: 2, dash: DASHES[Math.floor(index / palette.length) % 4]}}
      : {...common, type: "bar", marker: {color: colour}};
  }).filter(trace => trace.x.length);
  const bars = !numeric;
  const yaxis = {title: {text: data.unit ? `${data.figure.label} (${data.unit})` : data.figure.label}, automargin: true, type: state.scale};
  if (range) yaxis.range = range(bars);
  return {traces, layout: {xaxis, yaxis, showlegend: data.colour >= 0, barmode: "group", hovermode: "x",
    annotations: star(data, facet, xaxis, state.scale === "log")}};
}

function heat(data, facet) {
  const log = state.scale === "log";
  const text = data.found[facet].map(line => line.map(cell => cell ? (cell === data.best?.cell ? "★ " : "") + Number((cell.mean / data.factor).toPrecision(3)) : ""));
  const shown = value => log ? (value > 0 ? Math.log10(value) : null) : value;
  const z = data.found[facet].map(line => line.map(cell => cell ? shown(cell.mean / data.factor) : null));
  const all = data.found.flat(2).filter(Boolean).map(cell => shown(cell.mean / data.factor)).filter(value => value !== null);
  const category = axis => ({type: "category", automargin: true, title: {text: axis < 0 ? "" : sweep.axes[axis].words}});
  const small = data.labels(data.x).length * data.labels(data.colour).length <= 150;
  return {traces: [{type: "heatmap", x: data.labels(data.x), y: data.labels(data.colour), z, text, texttemplate: small ? "%{text}" : "",
    hovertemplate: "%{x}, %{y}: %{text} " + data.unit + "<extra></extra>", zmin: Math.min(...all), zmax: Math.max(...all),
    colorscale: isDark() ? [[0, "#1f2a3a"], [1, "#7db4f5"]] : [[0, "#eef4fc"], [1, "#1c5cab"]], xgap: 2, ygap: 2, showscale: !small,
    colorbar: {title: {text: (log ? "log10 " : "") + data.unit}, thickness: 12}}],
  layout: {xaxis: category(data.x), yaxis: category(data.colour), showlegend: false}};
}

/* All facets have the range of the figure, so that readers can compare them. */
function sameRange(values) {
  if (state.scale === "log") {
    const positive = values.filter(value => value > 0).map(Math.log10);
    return positive.length ? bars => [Math.min(...positive) - (bars ? 0.4 : 0.1), Math.max(...positive) + 0.1] : null;
  }
  const low = Math.min(0, ...values), high = Math.max(0, ...values);
  return () => [low * 1.06, high * 1.06 || 1];
}

function drawSweep() {
  const data = gather(), box = document.getElementById("facets"), said = document.getElementById("said");
  box.querySelectorAll(".chart").forEach(each => Plotly.purge(each));
  box.replaceChildren();
  if (!data || !data.values.length) {
    said.textContent = sweep.figures.length ? "No finished point has this figure here." : "No point is finished.";
    return;
  }
  const range = sameRange(data.values), averaged = data.found.flat(2).some(cell => cell && cell.n > 1),
    differs = data.found.flat(2).some(cell => cell && varies(cell));
  byId("answer").textContent = answer(data.figure);
  said.textContent = data.figure.label + (data.figure.label === data.figure.name ? "" : ` (${data.figure.name})`)
    + (data.unit ? `, in ${data.unit}` : "") + (data.best ? `; ★ ${data.figure.better === "high" ? "highest" : "lowest"} of these` : "")
    + (differs ? (state.kind === "heat" ? "; means" : areRepeats() ? "; means, with 95 % intervals over the repeats" : "; means, with bars from least to most") : averaged ? "; equal in all repetitions" : "");
  const panels = [];
  data.labels(data.facet).forEach((label, facet) => {
    if (!data.found[facet].flat().some(Boolean)) return;
    const panel = document.createElement("div"), chart = document.createElement("div");
    if (data.facet >= 0) {
      const heading = document.createElement("h3");
      heading.textContent = `${plain(sweep.axes[data.facet].words)} ${label}`;
      panel.append(heading);
    }
    chart.className = "chart";
    chart.setAttribute("role", "img");
    chart.setAttribute("aria-label", `${data.figure.label}: ${byId("answer").textContent}`);
    panel.append(chart);
    box.append(panel);
    panels.push([facet, chart]);
  });
  /* Only now every panel has its width. */
  for (const [facet, chart] of panels) {
    const {traces, layout} = state.kind === "heat" ? heat(data, facet) : lines(data, facet, range);
    const legend = data.colour < 0 ? {} : {title: {text: `${plain(sweep.axes[data.colour].words)} `}};
    const whole = arranged({height: innerWidth < 600 ? 320 : 380, legend, ...layout}, traces);
    if (whole.showlegend) whole.margin.t = 44;
    Plotly.newPlot(chart, traces, whole, {...CONFIG, displayModeBar: innerWidth < 600 ? false : "hover"});
  }
}

function show() {
  controls();
  drawSweep();
  const kept = Object.entries(state).filter(([key, value]) => value !== NONE || key in sweep.shown);
  history.replaceState(null, "", "#" + new URLSearchParams(kept));
}

for (const table of document.querySelectorAll("table.points")) {
  table.querySelectorAll("th button").forEach((button, column) => button.addEventListener("click", () => {
    const down = button.dataset.order === "up";
    table.querySelectorAll("th button").forEach(each => delete each.dataset.order);
    button.dataset.order = down ? "down" : "up";
    const value = row => { const cell = row.cells[column]; return cell?.dataset.value ?? cell?.textContent ?? ""; };
    const order = (a, b) => value(a).localeCompare(value(b), undefined, {numeric: true});
    const number = (a, b) => Number(value(a)) - Number(value(b));
    const rows = [...table.tBodies[0].rows];
    const plain = rows.every(row => value(row) !== "" && !Number.isNaN(Number(value(row))));
    table.tBodies[0].append(...rows.sort((a, b) => (down ? -1 : 1) * (plain ? number : order)(a, b)));
  }));
}

/* Conditions: the figure of the first one over the first cost; filled where all conditions hold, and a star for the cheapest. */
function drawConditions() {
  const place = byId("slo"), found = sweep.slo;
  if (!place || !found) return;
  const [{figure, operator, bound, unit: base}] = found.conditions, label = sweep.figures.find(each => each.name === figure)?.label ?? figure;
  const axis = sweep.axes.find(each => found.costs.includes(each.name)) ?? sweep.axes.find(each => each.name !== "seed");
  const groups = new Map();
  for (const {axes, figures, ...point} of found.configurations) {
    const others = Object.entries(axes).filter(([name]) => name !== axis?.name)
      .map(([name, value]) => `${sweep.axes.find(each => each.name === name)?.words ?? name} ${value}`).join(", ");
    const all = groups.get(others) ?? groups.set(others, []).get(others);
    if (figures[figure] !== null) all.push({...point, x: String(axes[axis?.name] ?? "-"), y: figures[figure]});
  }
  const lines = [...groups];
  const [factor, unit] = scaleFor(base, lines.flatMap(([, points]) => points.map(point => point.y)).concat(bound));
  const palette = isDark() ? report.dark : report.light, limit = bound / factor;
  const traces = lines.map(([name, points], index) => {
    const at = label => axis?.numbers ? axis.numbers[axis.labels.indexOf(label)] : label;
    const ordered = axis ? points.toSorted((a, b) => axis.labels.indexOf(a.x) - axis.labels.indexOf(b.x)) : points;
    const symbol = point => point.cheapest ? "star" : point.holds ? "circle" : "circle-open";
    return fitted({name, type: "scatter", mode: "lines+markers", x: ordered.map(point => at(point.x)), y: ordered.map(point => point.y / factor),
      marker: {symbol: ordered.map(symbol), size: ordered.map(point => point.cheapest ? 14 : 9)}, line: {color: palette[index % palette.length], width: 1}});
  });
  const text = cssColor("--text"), xaxis = horizontal(axis ? sweep.axes.indexOf(axis) : -1).layout;
  Plotly.react(place, traces, arranged({
    shapes: [{type: "line", xref: "paper", x0: 0, x1: 1, y0: limit, y1: limit, line: {color: text, dash: "dash", width: 1}}],
    annotations: [{xref: "paper", x: 1, xanchor: "right", y: limit, yanchor: "bottom", text: `${label} ${operator} ${+limit.toPrecision(3)} ${unit}`,
      showarrow: false}],
    xaxis, yaxis: {title: {text: unit ? `${label} (${unit})` : label}, rangemode: "tozero"}}, traces), {...CONFIG, displayModeBar: false});
}

show();
drawConditions();
players.push({draw: drawSweep}, {draw: drawConditions});
