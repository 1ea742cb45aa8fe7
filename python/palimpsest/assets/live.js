/* The page of a served drive reads `live.json` each second. Series begin when the page is opened, and survive a reload. */
const LIVE_KEY = "palimpsest-live", MOST_SAMPLES = 1800;
const count = value => value === null || value === undefined ? "-" : value.toLocaleString("en", {maximumFractionDigits: 0});
const ratio = value => value === null || value === undefined ? "none yet" : value.toFixed(2);
const all = now => ["read", "write", "trim", "flush"].reduce((sum, kind) => sum + (now.requests[kind] || 0), 0);
function amount(bytes) {
  const power = bytes < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10));
  return power ? `${(bytes / 1024 ** power).toPrecision(3)} ${"KMGT"[power - 1]}iB` : `${bytes} B`;
}
/* Panels below each other over one axis, with a line for each figure. */
const PANELS = {"requests a second": ["reads", "writes"], "MB/s": ["read", "written"],
  "write amplification": ["since the start"], "erases a second": ["erases"]};
report.charts.series = (() => {
  const data = [], layout = {height: 690, showlegend: false, annotations: [], xaxis: {title: {text: "served (s)"}, anchor: "y4"}};
  Object.entries(PANELS).forEach(([text, names], at) => {
    const axis = at ? at + 1 : "", top = 1 - at / 4;
    layout[`yaxis${axis}`] = {domain: [top - 0.25, top - 0.053], rangemode: "tozero", nticks: 5};
    layout.annotations.push({text, showarrow: false, x: 0, y: top, xref: "paper", yref: "paper", xanchor: "left", yanchor: "top",
      yshift: -5});
    names.forEach((name, slot) => data.push({type: "scatter", mode: "lines", name, yaxis: `y${axis}`, meta: {slot}}));
  });
  return {data, layout};
})();
let live = {samples: []}, earlier = null, last = null;
try { live = JSON.parse(sessionStorage.getItem(LIVE_KEY)) || live; } catch { /* a browser that keeps nothing */ }

/* Rates of the time between two answers; none before the first request. */
function sample(now) {
  const began = Date.now() / 1000 - now.served_s;
  if (Math.abs((live.began ?? began) - began) > 3) live = {samples: []};
  live.began ??= began;
  if (earlier && all(now)) {
    const rate = pick => Math.max(0, pick(now) - pick(earlier)) / (now.served_s - earlier.served_s);
    live.samples.push([now.served_s, rate(each => each.requests.read), rate(each => each.requests.write),
      rate(each => each.host.bytes_read) / 1e6, rate(each => each.host.bytes_written) / 1e6, now.write_amplification,
      rate(each => each.flash.erases)]);
    live.samples.splice(0, live.samples.length - MOST_SAMPLES);
    try { sessionStorage.setItem(LIVE_KEY, JSON.stringify(live)); } catch { /* a browser that keeps nothing */ }
  }
  earlier = now;
}
function said(now) {
  const clients = `${now.connections} ${now.connections === 1 ? "client" : "clients"}`;
  if (!all(now)) return `No request yet: the drive waits, with ${clients}, for ${duration(now.served_s * 1e9)}.`;
  const wrote = now.write_amplification === null ? "" : `, write amplification ${ratio(now.write_amplification)}`;
  return `${count(all(now))} requests in ${duration(now.served_s * 1e9)}${wrote}; ${clients}.`;
}
function totals(now) {
  const some = all(now), none = "none yet";
  const time = (kind, name) => now.latency_ns?.[kind] ? duration(now.latency_ns[kind][name]) : null;
  const shown = [["reads", some ? count(now.requests.read) : none], ["writes", some ? count(now.requests.write) : none],
    ["read", some ? amount(now.host.bytes_read) : none], ["written", some ? amount(now.host.bytes_written) : none],
    ["write amplification", ratio(now.write_amplification)], ["erases", some ? count(now.flash.erases) : none],
    ["read p99", time("read", "p99")], ["write p99", time("write", "p99")]];
  byId("totals").replaceChildren(...shown.filter(([, value]) => value !== null).map(([label, value]) => {
    const [tile, name, bold] = ["div", "span", "b"].map(tag => document.createElement(tag));
    [name.textContent, bold.textContent] = [label, value];
    tile.append(name, bold);
    return tile;
  }));
}
function series() {
  const {data} = report.charts.series;
  data.forEach((line, at) => {
    line.x = live.samples.map(each => each[0]);
    line.y = live.samples.map(each => each[at + 1]);
  });
  byId("figure-series").hidden = !live.samples.length;
  byId("no-series").hidden = live.samples.length > 0;
  draw("series");
}
function blocks({columns, state, states, valid_percent: valid, programmed_percent: programmed}) {
  const canvas = byId("blocks"), rows = Math.ceil(state.length / columns), shares = valid || programmed;
  [canvas.width, canvas.height] = [columns, rows];
  canvas.style.height = `${Math.max(60, Math.min(400, rows * 12))}px`;
  const context = canvas.getContext("2d"), [bad, free] = ["bad", "free"].map(each => states.indexOf(each));
  const [empty, light, step] = isDark() ? ["#333230", 30, 0.4] : ["#e2e1dc", 85, -0.55];
  state.forEach((each, cell) => {
    context.fillStyle = each === bad ? "#c33" : each === free ? empty : `hsl(210 60% ${light + shares[cell] * step}%)`;
    context.fillRect(cell % columns, Math.floor(cell / columns), 1, 1);
  });
  byId("blocks-says").textContent = "Rows are planes. Grey: free; red: bad; the stronger the blue, the more " +
    `${valid ? "valid" : "programmed"} data.`;
}
async function turn() {
  try {
    const now = await (await fetch("live.json")).json();
    sample(now);
    document.querySelector("h1").textContent = `${now.ssd} (${now.ftl})`;
    byId("answer").textContent = said(now);
    totals(now);
    blocks(now.blocks);
    series();
    last = now;
  } catch {
    byId("answer").textContent = `The drive is no longer served. ${last ? `Its last figures: ${said(last)}` : ""}`;
  }
  setTimeout(turn, 1000);
}
darkPage.addEventListener("change", () => last && blocks(last.blocks));
byId("theme").addEventListener("click", () => last && blocks(last.blocks));
turn();
