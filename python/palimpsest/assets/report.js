const report = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const darkPage = matchMedia("(prefers-color-scheme: dark)");
const byId = id => document.getElementById(id);
const PAPER_PX = 680, PAPER_HEIGHT_PX = 940;
let printing = false;

/* Themes: as the system has it until the reader says otherwise; what the reader says is remembered. */
const THEMES = ["auto", "light", "dark"];
const theme = () => root.dataset.theme || "auto";
const isDark = () => !printing && (theme() === "dark" || (theme() === "auto" && darkPage.matches));
function setTheme(name) {
  root.dataset.theme = name;
  try { localStorage.setItem("palimpsest-theme", name); } catch { /* a browser that keeps nothing for files */ }
  byId("theme").textContent = `theme: ${name}`;
  drawAll();
}

/* Colours and the layout that all charts share. Margins have room for what most charts have, a line of legend included: where
   labels need more, plotly draws the whole chart again. It makes room for all labels, so none is measured for whether it fits. */
function painted(trace) {
  const meta = trace.meta || {};
  if ("state" in meta) {
    const state = [...report.states, ...report.subpages].find(each => each.name === meta.state);
    return {...trace, fillcolor: isDark() ? state.dark : state.light};
  }
  if (!("slot" in meta)) return trace;
  const color = (isDark() ? report.dark : report.light)[meta.slot];
  const key = trace.type === "scatter" && trace.mode !== "markers" ? "line" : "marker";
  return {...trace, [key]: {...trace[key], color}};
}
const isNarrow = () => !printing && root.clientWidth < 600;
/* Names of layers may be long: on a phone they are wrapped. */
function wrapped(text, most) {
  const lines = [""];
  for (const word of String(text).match(/[^ -]+[ -]*/g) || []) {
    if (lines.at(-1) && (lines.at(-1) + word).trimEnd().length > most) lines.push("");
    lines[lines.length - 1] += word;
  }
  return lines.join("<br>");
}
const LEGEND_LETTERS = 44, LABEL_LETTERS = 24;
function fitted(trace) {
  if (!isNarrow()) return trace;
  const y = trace.orientation === "h" ? {y: trace.y.map(name => typeof name === "string" ? wrapped(name, LABEL_LETTERS) : name)} : {};
  return {...trace, ...(trace.name ? {name: wrapped(trace.name, LEGEND_LETTERS)} : {}), ...y};
}
function legendRows(data, narrow) {
  const names = data.filter(trace => trace.showlegend !== false).flatMap(trace => (trace.name || "").split("<br>"));
  const widest = Math.max(...names.map(name => name.length)) * (narrow ? 6 : 7) + 50, room = printing ? PAPER_PX : root.clientWidth;
  return Math.ceil(names.length / Math.max(1, Math.floor((Math.min(room, 1200) - 90) / widest)));
}
function arranged(layout, data) {
  const style = getComputedStyle(root);
  const color = name => style.getPropertyValue(name).trim();
  const [text, line, page] = printing ? ["#000", "#bbb", "#fff"] : [color("--text"), color("--line"), color("--page")];
  const narrow = isNarrow();
  const shown = data.some(trace => trace.showlegend !== false && trace.type !== "heatmap") && data.length > 1;
  const full = {height: 360, hovermode: "closest", autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: {color: text, size: narrow ? 11 : 13, family: "system-ui, sans-serif"}, showlegend: shown,
        hoverlabel: {bgcolor: page, bordercolor: line, font: {color: text}}, modebar: {color: line, activecolor: text,
    bgcolor: "rgba(0,0,0,0)"}, dragmode: narrow ? false : "zoom", ...layout,
    margin: {l: narrow ? 52 : 70, r: narrow ? 8 : 20, t: shown ? narrow ? 38 : 42 : 18, b: 53, ...layout.margin},
    legend: {orientation: "h", x: 0, y: 1, yanchor: "bottom", maxheight: 0.9, ...layout.legend}};
  const more = shown ? Math.max(0, legendRows(data, narrow) - 2) * (narrow ? 17 : 20) : 0;
  const labels = data[0]?.orientation === "h" ? Array.from(data[0].y, name => String(name).split("<br>").length) : [];
  full.height += more + 15 * labels.length * Math.max(0, Math.max(0, ...labels) - 2);
  full.margin.t += more;
  if (printing) Object.assign(full, {width: PAPER_PX, height: Math.min(full.height, PAPER_HEIGHT_PX)});
  /* Panels that paper makes lower have smaller titles. */
  const lower = printing && layout.height > PAPER_HEIGHT_PX;
  if (lower) full.annotations = layout.annotations?.map(each => ({...each, font: {size: 9}, yshift: 0}));
  if (narrow) full.annotations = layout.annotations?.map(each => ({...each, text: wrapped(each.text, LEGEND_LETTERS), align: "left"}));
  for (const key of Object.keys(full).filter(key => /^[xy]axis/.test(key))) {
    full[key] = {gridcolor: line, linecolor: line, zerolinecolor: line, automargin: true, ticklabeloverflow: "allow", ...full[key]};
  }
  return full;
}
const CONFIG = {displaylogo: false,
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]]};
function draw(name) {
  const place = byId(name), chart = report.charts[name];
  if (!place || !chart || (place.closest("[hidden]") && !printing)) return;
  const data = chart.data.map(painted).map(fitted);
  Plotly.react(place, data, arranged(chart.layout, data), {...CONFIG, displayModeBar: innerWidth < 600 ? false : "hover"});
}
function drawAll() {
  for (const name of Object.keys(report.charts)) draw(name);
  [...players, ...timelines].forEach(each => each.draw());
}

/* Buttons that show one figure of several. */
for (const group of document.querySelectorAll("[data-views]")) {
  const buttons = [...group.querySelectorAll("button")];
  for (const button of buttons) button.addEventListener("click", () => {
    for (const other of buttons) {
      other.setAttribute("aria-pressed", String(other === button));
      byId(`figure-${other.dataset.shows}`).hidden = other !== button;
    }
    draw(button.dataset.shows);
  });
}

/* The map of blocks, played over the run. */
function decoded(text, wide) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  if (!wide) return bytes;
  const view = new DataView(bytes.buffer);
  return Float64Array.from({length: bytes.length / 2}, (_, index) => view.getUint16(2 * index, true));
}
function duration(nanoseconds) {
  const [unit, factor] = [["s", 1e9], ["ms", 1e6], ["us", 1e3]].find(([, each]) => nanoseconds >= each) || ["ns", 1];
  return `${(nanoseconds / factor).toPrecision(4)} ${unit}`;
}
const WRITTEN = ["open", "partial", "full", "reused"];
function mixed(color, other, share) {
  const parts = hex => [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
  const [one, two] = [parts(color), parts(other)];
  return `rgb(${one.map((each, at) => Math.round(each * (1 - share) + two[at] * share)).join(",")})`;
}
class Player {
  constructor(section) {
    this.frames = report.frames.map(each => ({...each, state: decoded(each.state, false),
      valid: each.valid && decoded(each.valid, false), erases: decoded(each.erases, true)}));
    const find = name => section.querySelector(`[data-${name}]`);
    [this.place, this.play, this.slider, this.output, this.key, this.layer] =
      ["map", "play", "slider", "output", "key", "layer"].map(find);
    this.quantities = [...section.querySelectorAll("[data-quantity]")];
    this.quantity = "state";
    this.timer = 0;
    this.slider.addEventListener("input", () => { this.stop(); this.draw(); });
    this.play.addEventListener("click", () => this.timer ? this.stop() : this.start());
    this.layer?.addEventListener("change", () => { this.stop(); this.choose(); });
    for (const button of this.quantities) button.addEventListener("click", () => {
      this.quantity = button.dataset.quantity;
      for (const other of this.quantities) other.setAttribute("aria-pressed", String(other === button));
      this.draw();
    });
    this.choose();
  }
  choose() {
    this.run = this.frames[this.layer ? this.layer.selectedIndex : 0];
    this.slider.max = this.run.requests.length - 1;
    this.slider.value = this.slider.max;
    const valid = this.quantities.find(button => button.dataset.quantity === "valid");
    valid.disabled = !this.run.valid;
    if (!this.run.valid && this.quantity === "valid") this.quantities[0].click();
    this.draw();
  }
  start() {
    if (this.slider.value === this.slider.max) this.slider.value = 0;
    this.play.textContent = "pause";
    this.timer = setInterval(() => {
      this.slider.value = Number(this.slider.value) + 1;
      this.draw();
      if (this.slider.value === this.slider.max) this.stop();
    }, 150);
    this.draw();
  }
  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.play.textContent = "play";
  }
  when() {
    const {requests, time_ns: times} = this.run, at = Number(this.slider.value);
    const time = times.some(Boolean) ? `${duration(times[at])}, ` : "";
    return `${time}${requests[at].toLocaleString("en")} requests`;
  }
  cells() {
    const {columns, rows, blocks, state, valid, erases, most_erases: most} = this.run;
    const begin = Number(this.slider.value) * blocks.length, values = [], texts = [];
    const names = report.states.map(each => each.name);
    for (let row = 0; row < rows.length; row++) {
      const z = [], text = [];
      for (let cell = row * columns; cell < (row + 1) * columns; cell++) {
        const at = begin + cell, share = valid ? valid[at] / 255 : null, mean = erases[at] / 65535 * most;
        // The bands of the scale are one wide: the position of a block within its band is its valid share.
        z.push(this.quantity === "state" ? state[at] + 0.02 + 0.96 * (share ?? 1) : this.quantity === "valid" ? 100 * share : mean);
        text.push(`${blocks[cell] > 1 ? `${blocks[cell]} blocks, most ` : ""}${names[state[at]]}` +
          `${share === null ? "" : `<br>${(100 * share).toFixed(0)} % valid`}<br>${mean.toFixed(1)} erases`);
      }
      values.push(z);
      texts.push(text);
    }
    return [values, texts];
  }
  scale() {
    if (this.quantity !== "state") {
      const top = this.quantity === "valid" ? 100 : Math.max(1, this.run.most_erases);
      const title = this.quantity === "valid" ? "valid (%)" : "erases";
      return {colorscale: "Cividis", zmin: 0, zmax: top, showscale: true,
        colorbar: {title: {text: title, side: "right"}, thickness: 12}};
    }
    const steps = report.states.length;
    const bands = report.states.flatMap((each, index) => {
      const full = isDark() ? each.dark : each.light;
      const pale = WRITTEN.includes(each.name) ? mixed(full, isDark() ? "#1a1a19" : "#ffffff", 0.7) : full;
      return [[index / steps, pale], [(index + 1) / steps, full]];
    });
    return {colorscale: bands, zmin: 0, zmax: steps, showscale: false};
  }
  draw() {
    const {rows, channels, columns, step} = this.run, [z, text] = this.cells();
    const starts = channels.map((channel, row) => row === 0 || channels[row - 1] !== channel ? row : -1).filter(row => row >= 0);
    const every = Math.ceil(starts.length / 16);
    const ticks = starts.filter((_, index) => index % every === 0);
    const heat = {type: "heatmap", z, text, y: rows, x0: step / 2, dx: step, xgap: columns <= 64 ? 1 : 0, ygap: 1, meta: {},
      hovertemplate: "%{y}, blocks near %{x:.0f}<br>%{text}<extra></extra>", ...this.scale()};
    const layout = {height: Math.min(620, Math.max(240, 90 + 14 * rows.length)), margin: {l: innerWidth < 600 ? 78 : 94},
      xaxis: {title: {text: "block of the plane"}, showgrid: false, zeroline: false},
      yaxis: {autorange: "reversed", type: "category", tickvals: ticks, ticktext: ticks.map(row => `channel ${channels[row]}`),
        showgrid: false}};
    Plotly.react(this.place, [heat], arranged(layout, [heat]), {...CONFIG, displayModeBar: false});
    this.output.textContent = this.when();
    this.slider.setAttribute("aria-valuetext", this.when());
    const counts = this.run.counts[Number(this.slider.value)], blocks = counts.reduce((sum, each) => sum + each, 0);
    const present = index => this.run.counts.some(each => each[index] > 0);
    this.key.hidden = this.quantity !== "state";
    this.key.replaceChildren(...report.states.map((each, index) => {
      const [entry, swatch] = [document.createElement("span"), document.createElement("i")];
      swatch.style.background = isDark() ? each.dark : each.light;
      entry.append(swatch, `${each.name}: ${counts[index].toLocaleString("en")} (${(100 * counts[index] / blocks).toFixed(1)} %)`);
      entry.hidden = !present(index);
      return entry;
    }));
  }
}

byId("theme").textContent = `theme: ${theme()}`;
byId("theme").addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]));
darkPage.addEventListener("change", drawAll);

/* Each chart is drawn once: players and timelines draw themselves. */
Object.keys(report.charts).forEach(name => draw(name));
const players = [...document.querySelectorAll("[data-player]")].map(section => new Player(section));
const timelines = [...document.querySelectorAll("[data-timeline]")].map(section => new Gantt(section));

/* Plotly's own answer to another width forgets heights; and what is narrow is arranged in another way. */
let drawnWidth = innerWidth, redrawing = 0;
addEventListener("resize", () => {
  if (printing || innerWidth === drawnWidth) return;
  drawnWidth = innerWidth;
  cancelAnimationFrame(redrawing);
  redrawing = requestAnimationFrame(drawAll);
});

/* Paper: everything open, light, charts as wide as the page. */
addEventListener("beforeprint", () => {
  printing = true;
  document.querySelectorAll("details").forEach(each => { each.dataset.was = each.open; each.open = true; });
  drawAll();
});
addEventListener("afterprint", () => {
  printing = false;
  document.querySelectorAll("details").forEach(each => { each.open = each.dataset.was === "true"; });
  document.querySelectorAll(".chart").forEach(place => { if (place.layout) delete place.layout.width; });
  drawAll();
});
root.dataset.ready = "true";
