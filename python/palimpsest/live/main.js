// The page: controls, the loop of time, and text beside the pictures. Ignored: how flash works, which the core knows.

import { Core } from "./core.js";
import { colourOf, colours, drawAddresses, drawAmplification, drawFlash, drawLatencies, grid } from "./draw.js";
import { duration, Model, size } from "./model.js";
import { SCENES, SPARES, WORKLOADS } from "./scenes.js";

const at = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const FRAME_MS = { normal: 33, calm: 400 };
const MOST_IN_FLIGHT = 32;
const MEASURE_MS = 300;
const SIDEWAYS_PX = 12;

let core = null, catalogue = null, model = null, palette = colours();
let scene = 0, playing = false, last = 0, drawn = 0, measured = 0, cursor = null, dragged = new Set(), held = [];
let reached = false;
const state = { layer: "", victim: "greedy", spare: "", workload: 0 };

function problem(error) {
  at("problem").hidden = !error;
  at("problem").textContent = error ? error.message ?? String(error) : "";
  if (error) play(false);
}

function attempt(action) {
  try {
    action();
    problem(null);
    return true;
  } catch (error) {
    problem(error);
    return false;
  }
}

function option(value, text = value) {
  const element = document.createElement("option");
  [element.value, element.textContent] = [value, text];
  return element;
}

// The keys of the present drive, as `--set` takes them.
function settings() {
  return [...SCENES[scene].set, `ssd.over_provisioning=${state.spare}`, `ftl.victim=${state.victim}`];
}

function drive() {
  const { ssd, precondition } = SCENES[scene];
  return { ssd, ftl: state.layer, set: settings(), precondition, workload: workload(), seed: 1 };
}

function workload() {
  // Before the jobs, because a key after a name belongs to this job.
  return `iodepth=${SCENES[scene].depth},${WORKLOADS[state.workload][1]}`;
}

// A new drive, with power cuts where the layer allows them. The core drops keys that the layer does not read, and keeps
// the present drive if it refuses the new one: returns its message then, else an empty text.
function open() {
  let opened = null, refused = "";
  for (const power_cuts of [true, false]) {
    try {
      opened = core.call({ do: "open", ...drive(), depth: SCENES[scene].depth, power_cuts });
      break;
    } catch (error) {
      refused = error.message;
    }
  }
  if (!opened) return refused;
  const { set } = opened.shape, hasVictims = set.some((each) => each.startsWith("ftl.victim="));
  at("victim").disabled = !hasVictims;
  const rule = hasVictims ? catalogue.victims.find((policy) => policy.name === state.victim).about : "";
  problem(null);
  reached = false;
  model = new Model(opened.shape, opened.view, rule, SCENES[scene].hot);
  legend();
  model.set = set;
  at("cut").disabled = !opened.shape.may_lose_power;
  at("cut").title = opened.shape.may_lose_power ? "" : "This layer takes no power cuts here.";
  cursor = null;
  play(false);
  at("place").textContent = "\u00a0";
  measure();
  at("happening").textContent = `A new drive of ${size(opened.shape.bytes)}. Play, or step.`;
  showCommand();
  draw();
  return "";
}

// Applies a setting, or keeps the present drive with the old setting.
function change(name, value) {
  const old = state[name];
  state[name] = value;
  const refused = open();
  if (!refused) return;
  state[name] = old;
  at(name).value = old;
  problem(`The drive is unchanged, because it cannot have this setting. ${refused}`);
}

function showCommand() {
  const { ssd, precondition } = SCENES[scene];
  const sets = model.set.map((set) => `--set ${set.includes("%") ? `'${set}'` : set}`).join(" ");
  at("command").textContent = `palimpsest run --ssd ${ssd} --ftl ${state.layer} ${sets} ` +
    `--precondition ${precondition} --workload '${workload()}' --requests 2000 --out result`;
  at("outcome").textContent = "";
  at("result").hidden = true;
}

function choose(number) {
  scene = (number + SCENES.length) % SCENES.length;
  const chosen = SCENES[scene];
  at("scene").value = scene;
  at("title").textContent = `${scene + 1}. ${chosen.title}`;
  at("question").textContent = chosen.question;
  const paragraph = (text) => Object.assign(document.createElement("p"), { textContent: text });
  at("text").replaceChildren(...chosen.text.map(paragraph));
  at("exercise").textContent = chosen.exercise;
  at("answer").textContent = chosen.answer;
  at("answer").parentElement.open = false;
  Object.assign(state, { layer: chosen.ftl, victim: "greedy", spare: chosen.spare, workload: chosen.workload });
  const names = catalogue.layers.map((layer) => layer.name);
  const others = names.filter((name) => !chosen.layers.includes(name) && name !== "zns");
  const group = document.createElement("optgroup");
  group.label = "other layers";
  group.append(...others.map((name) => option(name)));
  at("layer").replaceChildren(...chosen.layers.map((name) => option(name)), group);
  at("spare").replaceChildren(...(chosen.spares ?? SPARES).map((spare) => option(spare)));
  at("layer").value = state.layer;
  at("victim").value = state.victim;
  at("spare").value = state.spare;
  at("workload").value = state.workload;
  at("speed").value = chosen.speed;
  history.replaceState(null, "", `#scene=${scene + 1}`);
  problem(open());
  pace();
}

// Simulated nanoseconds of a second: from 20 us to 10 s.
function rate() {
  return 20e3 * 10 ** ((at("speed").value / 100) * 5.7);
}

function pace() {
  at("pace").textContent = `${duration(rate())} a second`;
}

function play(on) {
  playing = on && model !== null && !core?.failed;
  at("play").textContent = playing ? "Pause" : "Play";
  at("play").setAttribute("aria-pressed", playing);
  for (const id of ["log", "happening"]) at(id).setAttribute("aria-live", playing ? "off" : "polite");
  if (playing) {
    last = performance.now();
    requestAnimationFrame(frame);
  }
}

function frame(now) {
  if (!playing) return;
  const gap = now - last;
  if (gap >= (calm.matches ? FRAME_MS.calm : FRAME_MS.normal)) {
    const ns = Math.round(rate() * Math.min(gap, 500) / 1000);
    last = now;
    attempt(() => model.take(core.call({ do: "advance", ns, load: true })));
    if (now - measured > MEASURE_MS) measure();
    draw();
  }
  requestAnimationFrame(frame);
}

function act(request) {
  if (!model) return;
  attempt(() => {
    model.take(core.call(request));
    measure();
  });
  draw();
}

function measure() {
  measured = performance.now();
  model.measure(core.call({ do: "figures" }));
  if (!reached && SCENES[scene].goal(model, state)) reached = true;
}

function figures() {
  const { figures: found, counts, view } = model;
  const latency = found?.latency_ns?.write ?? found?.latency_ns?.read;
  const kind = found?.latency_ns?.write ? "Write" : "Read";
  const shown = [
    ["Time of the drive", duration(view.now)],
    ["Requests", `${model.requests}`],
    ["Write amplification", found?.write_amplification === null ? "none" : found.write_amplification.toFixed(2)],
    [`${kind} latency, mean`, latency ? duration(latency.mean) : "none"],
    [`${kind} latency, p99`, latency ? duration(latency.p99) : "none"],
    ["Erases", `${counts.erase}`],
    ["Pages copied", `${counts.copies}`],
  ];
  at("figures").replaceChildren(...shown.map(([name, value]) => {
    const tile = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
    [dt.textContent, dd.textContent] = [name, value];
    tile.append(dt, dd);
    return tile;
  }));
}

const LETTERS = { read: "R", program: "P", erase: "E" };

function queues() {
  const rows = model.queues().map((queue, die) => {
    const row = document.createElement("div"), name = document.createElement("b"), count = document.createElement("em");
    name.textContent = `channel ${model.shape.channel_of_die[die]}, die ${die}`;
    count.textContent = queue.length || "idle";
    row.append(name, count);
    for (const [, kind, cause, , block, page, stage] of queue.slice(0, 12)) {
      const chip = document.createElement("span");
      chip.className = stage;
      chip.textContent = `${LETTERS[kind]} ${cause}`;
      chip.title = `${kind} of block ${block}${kind === "erase" ? "" : `, page ${page}`}: ${stage}`;
      row.append(chip);
    }
    return row;
  });
  at("queues").replaceChildren(...rows);
}

function events() {
  const lines = model.log.slice(0, 60).map(({ text, time, kind }) => {
    const line = document.createElement("li"), stamp = document.createElement("time");
    stamp.textContent = duration(time);
    line.className = kind;
    line.append(stamp, text);
    return line;
  });
  at("log").replaceChildren(...lines);
}

// Cells of flash with the data of the address at the cursor.
function marked() {
  if (cursor === null) return new Set();
  const width = model.shape.unit_bytes / model.shape.subpage_bytes, first = cursor * width;
  const found = new Set();
  model.view.logical.forEach((logical, cell) => {
    if (logical >= first && logical < first + width && model.view.cells[cell] >= 0) found.add(cell);
  });
  return found;
}

function draw() {
  if (!model) return;
  drawn = performance.now();
  const pulse = calm.matches || !playing ? 0.5 : 0.5 + 0.5 * Math.sin(drawn / 150);
  const owners = model.hot || jobs() ? 2 : 1;
  drawFlash(at("flash"), model, palette, { marked: marked(), pulse, owners });
  const isFocused = document.activeElement === at("addresses");
  drawAddresses(at("addresses"), model, palette, { cursor, owners, isFocused });
  drawAmplification(at("amplification"), model.amplification, palette);
  drawLatencies(at("latency"), model.latencies, palette);
  figures();
  queues();
  events();
  if (model.happening) at("happening").textContent = model.happening;
  at("goal").textContent = reached ? "Reached." : "";
  describe();
  // A screen reader would speak each change while the drive plays.
  if (cursor !== null && !playing) describePlace();
}

function describe() {
  const { view } = model, free = view.programs.filter((_, page) => page % model.shape.pages_per_block === 0);
  const empty = free.filter((programs) => !programs).length;
  at("flash").setAttribute("aria-label", `Flash: ${free.length} blocks, ${empty} empty, ` +
    `${model.victims.size} victims, ${view.operations.length} operations under way`);
}

// Names of the workload's jobs, if the picture tells them apart.
function jobs() {
  return state.workload === SCENES[scene].workload ? SCENES[scene].jobs : undefined;
}

function legend() {
  const names = model?.hot ? ["cold", "hot"] : jobs() ?? ["written by the workload"];
  const data = names.map((name, owner) => [name, colourOf(owner, palette)]);
  if (!model?.hot && SCENES[scene].precondition !== "none") data.push(["written before", palette.other]);
  const rest = [["written by you", palette.user], ["stale", palette.stale], ["empty", palette.free]];
  if (model?.shape.has_files) data.splice(0, 9, ["newest copy", palette.other]);
  const entries = [...data, ...rest.slice(model?.shape.has_files ? 1 : 0), ["padding", palette.dim]];
  const spans = entries.map(([text, colour]) => {
    const span = document.createElement("span"), box = document.createElement("i");
    box.style.background = colour;
    span.append(box, text);
    return span;
  });
  const frames = document.createElement("span");
  frames.textContent = "blue frame: open block; red frame: victim; dashes: operation that waits; bar: page " +
    "programmed twice; v: valid subpages; e: erases";
  frames.style.whiteSpace = "normal";
  at("legend").replaceChildren(...spans, frames);
}

// Requests of the user.

function place(unit) {
  const { units } = grid(at("addresses"), model.shape);
  cursor = Math.max(0, Math.min(units - 1, unit));
  describePlace();
}

function describePlace() {
  const copies = [...marked()], { unit_bytes: bytes, subpages_per_page: width, pages_per_block: pages } = model.shape;
  const [cell] = copies, page = Math.floor(cell / width);
  const where = model.shape.has_files ? "placed by the file system" : copies.length
    ? `block ${Math.floor(page / pages)}, page ${page % pages}` : "not on flash";
  const full = model.view.in_flight < MOST_IN_FLIGHT ? ""
    : ` ${MOST_IN_FLIGHT} requests are in flight. Play, or step, before you send more.`;
  at("place").textContent = `Address ${size(cursor * bytes)}: ${where}.${full}`;
}

function send() {
  if (cursor === null) place(0);
  const bytes = model.shape.unit_bytes;
  act({ do: "submit", kind: at("kind").value, offset: cursor * bytes, bytes });
}

function unitUnder(event) {
  const box = at("addresses").getBoundingClientRect();
  const { edge, columns, units } = grid(at("addresses"), model.shape);
  const column = Math.floor((event.clientX - box.left) / edge), row = Math.floor((event.clientY - box.top) / edge);
  const unit = row * columns + column;
  return column >= 0 && column < columns && unit >= 0 && unit < units ? unit : null;
}

function pointer(event) {
  const unit = model && unitUnder(event);
  if (unit === null || unit === undefined) return;
  place(unit);
  if (event.buttons & 1 || event.type === "pointerdown") {
    if (dragged.has(unit)) return;
    if (model.view.in_flight < MOST_IN_FLIGHT) {
      dragged.add(unit);
      return send();
    }
  }
  if (!playing) draw();
}

// A finger that moves up or down scrolls the page. So a touch sends requests only when it has ended or moved sideways.
function press(event) {
  if (event.type === "pointerdown") dragged.clear();
  if (event.type === "pointerdown" || event.type === "pointercancel") held = [];
  if (event.type === "pointercancel") return;
  // A browser gathers the moves of a frame.
  const moves = event.getCoalescedEvents?.() ?? [];
  held.push(...(moves.length ? moves : [event]));
  const decided = event.type === "pointerup" || dragged.size || Math.abs(event.clientX - held[0].clientX) > SIDEWAYS_PX;
  if (event.pointerType === "touch" && !decided) return;
  for (const each of held.splice(0)) pointer(each);
}

function keys(event) {
  if (!model) return;
  const columns = grid(at("addresses"), model.shape).columns;
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  if (event.key in steps) place((cursor ?? 0) + steps[event.key]);
  else if (event.key === "Enter") send();
  else return;
  event.preventDefault();
  draw();
}

const SHORT = {
  " ": () => play(!playing), o: () => at("operation").click(), r: () => at("request").click(),
  c: () => at("cut").click(), n: () => at("anew").click(),
};

function shortcut(event) {
  const tag = event.target.tagName;
  if (event.ctrlKey || event.metaKey || event.altKey || ["SELECT", "INPUT", "TEXTAREA"].includes(tag)) return;
  if (event.key === " " && ["BUTTON", "SUMMARY", "A"].includes(tag)) return;
  if (!(event.key in SHORT)) return;
  event.preventDefault();
  SHORT[event.key]();
}

function whole() {
  at("outcome").textContent = "Runs.";
  setTimeout(() => attempt(() => {
    const text = core.ask({ do: "run", ...drive(), set: model.set, requests: 2000 });
    const result = JSON.parse(text), value = result.write_amplification;
    const link = at("result");
    URL.revokeObjectURL(link.href);
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    [link.download, link.hidden] = ["result.json", false];
    const written = value === null ? "" : `write amplification ${value.toFixed(3)}, `;
    const time = duration(result.simulated_ns);
    at("outcome").textContent = `${written}${result.flash.erases} erases in ${time} of the drive.`;
  }), 20);
}

function listen() {
  const step = (until) => () => (play(false), act({ do: "step", until, load: true }));
  at("play").onclick = () => play(!playing);
  at("operation").onclick = step("operation");
  at("request").onclick = step("request");
  at("cut").onclick = () => (play(false), act({ do: "cut-power" }));
  at("anew").onclick = open;
  at("whole").onclick = whole;
  at("speed").oninput = pace;
  at("before").onclick = () => choose(scene - 1);
  at("after").onclick = () => choose(scene + 1);
  at("scene").onchange = () => choose(Number(at("scene").value));
  for (const name of ["layer", "victim", "spare", "workload"]) {
    at(name).onchange = () => {
      change(name, name === "workload" ? Number(at(name).value) : at(name).value);
    };
  }
  for (const type of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) {
    at("addresses").addEventListener(type, press);
  }
  at("addresses").addEventListener("keydown", keys);
  at("addresses").addEventListener("blur", draw);
  document.addEventListener("keydown", shortcut);
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    palette = colours();
    legend();
    draw();
  });
}

async function begin() {
  try {
    const response = await fetch("palimpsest.wasm.gz");
    if (!response.ok) throw new Error("The simulator palimpsest.wasm.gz is missing; `make live` builds it.");
    core = await Core.of(await response.arrayBuffer());
    catalogue = core.call({ do: "catalogue" });
  } catch (error) {
    return problem(error);
  }
  at("scene").append(...SCENES.map(({ title }, number) => option(number, `${number + 1}. ${title}`)));
  at("victim").append(...catalogue.victims.map(({ name }) => option(name)));
  at("workload").append(...WORKLOADS.map(([text], number) => option(number, text)));
  listen();
  const asked = Number(/scene=(\d+)/.exec(location.hash)?.[1] ?? 1) - 1;
  choose(asked >= 0 && asked < SCENES.length ? asked : 0);
  // For tests: the present model and core.
  window.lab = {
    core, state, choose, drive, measure, get model() { return model; }, get reached() { return reached; },
  };
}

begin();
