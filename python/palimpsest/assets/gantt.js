"use strict";
/* The timeline of flash operations: a lane for the bus of each channel and for the array of each plane, gates as arrows.
   Draws what is in sight; marks too narrow to distinguish are joined, so that a page stays quick with any number of them. */
const CAUSE_SLOTS = {host: 0, gc: 1, merge: 2, rmw: 3, prefetch: 4, metadata: 6};
const OPERATION_KINDS = ["read", "program", "erase"];
const OPENS_NS = 5e6, MOST_ARROWS = 60, MOST_BARS = 4000;

/* Times since the start of the measurement, and who follows whom, by index. */
function unpackedTimeline(run) {
  const summed = steps => { let sum = 0; return steps.map(step => sum += step); };
  const each = {...run.operations, operation: summed(run.operations.operation)}, count = each.operation.length;
  ["kind", "cause", "request_kind"].forEach(name => { each[name] = each[name].map(at => run.words[at]); });
  const planned = summed(each.planned_ns);
  const absolute = name => each[name].map((time, index) => time === null ? null : planned[index] + time);
  const names = ["ready", "start", "transfer_start", "transfer_end", "array_start", "array_end", "end", "delivered"];
  const times = Object.fromEntries(names.map(name => [name, absolute(`${name}_ns`)]));
  const lane = (key, value) => run.lanes.findIndex(lane => lane[key] === value && (key === "plane" || lane.plane === null));
  const buses = new Map(), planes = new Map();
  each.channel.forEach(channel => buses.has(channel) || buses.set(channel, lane("channel", channel)));
  each.plane.forEach(plane => planes.has(plane) || planes.set(plane, lane("plane", plane)));
  const indexOf = new Map(each.operation.map((number, index) => [number, index]));
  const before = each.follows.map(numbers => numbers.map(number => indexOf.get(number)).filter(index => index !== undefined));
  const after = each.operation.map(() => []);
  before.forEach((earlier, index) => earlier.forEach(at => after[at].push(index)));
  const unpacked = {...run, ...each, ...times, planned, count, indexOf, before, after,
    bus: each.channel.map(channel => buses.get(channel)), array: each.plane.map(plane => planes.get(plane)),
    over: each.operation.map((_, index) => times.delivered[index] ?? times.end[index])};
  unpacked.marks = timelineMarks(unpacked);
  return unpacked;
}
function timelineMarks(run) {
  const marks = [];
  for (let index = 0; index < run.count; index++) {
    const group = `${run.cause[index]} ${run.kind[index]}`;
    const mark = (lane, from, until) => { if (until > from) marks.push({lane, group, from, until, index}); };
    const command = run.kind[index] === "program" ? run.transfer_start[index] : run.array_start[index];
    mark(run.bus[index], run.start[index], command);
    if (run.transfer_start[index] !== null) mark(run.bus[index], run.transfer_start[index], run.transfer_end[index]);
    let from = run.array_start[index];
    run.suspended_at_ns[index].forEach((at, place) => {
      mark(run.array[index], from, at);
      from = run.resumed_at_ns[index][place];
    });
    mark(run.array[index], from, run.array_end[index]);
  }
  return marks.sort((one, two) => one.from - two.from);
}

class Gantt {
  constructor(section) {
    this.runs = report.timelines.map(unpackedTimeline);
    const find = name => section.querySelector(`[data-${name}]`);
    [this.place, this.layer, this.output, this.table] = ["lanes", "run", "sight", "operation"].map(find);
    [this.request, this.number] = ["request", "number"].map(find);
    this.layer?.addEventListener("change", () => this.choose());
    const moves = {earlier: [-0.5, 1], later: [0.5, 1], closer: [0, 0.5], farther: [0, 2]};
    for (const [name, [shift, factor]] of Object.entries(moves)) find(name).addEventListener("click", () => this.move(shift, factor));
    find("everything").addEventListener("click", () => { this.select(-1, false); this.show(0, this.last); });
    this.request.addEventListener("change", () => this.goToRequest(Number(this.request.value)));
    this.number.addEventListener("change", () => this.goToOperation(Number(this.number.value)));
    this.choose();
  }
  choose() {
    this.run = this.runs[this.layer ? this.layer.selectedIndex : 0];
    this.last = this.run.over.reduce((most, each) => Math.max(most, each), 1);
    this.unit = this.last > 5e7 ? ["ms", 1e6] : ["us", 1e3];
    this.selected = -1;
    this.tell();
    this.show(...this.busiest());
  }
  /* The 5 ms in which most operations start. */
  busiest() {
    const starts = [...this.run.start].sort((one, two) => one - two);
    let [first, from, most] = [0, starts[0], 0];
    starts.forEach((start, index) => {
      while (start - starts[first] > OPENS_NS) first++;
      if (index - first >= most) [from, most] = [starts[first], index - first + 1];
    });
    return [from, from + OPENS_NS];
  }

  /* What is in sight. */
  show(from, until) {
    const least = 1000, length = Math.min(Math.max(until - from, least), this.last * 1.02);
    this.from = Math.min(Math.max(from, -0.01 * this.last), 1.01 * this.last - length);
    this.until = this.from + length;
    this.draw();
  }
  move(shift, factor) {
    const middle = (this.from + this.until) / 2, length = this.until - this.from;
    this.show(middle + shift * length - factor * length / 2, middle + shift * length + factor * length / 2);
  }
  goToRequest(number) {
    const {run} = this, {requests} = run;
    const place = requests.request.indexOf(number);
    if (place < 0) return this.say(`no request ${number} in this timeline`);
    const own = run.request.flatMap((request, index) => request === number ? [index] : []);
    const ends = own.map(index => run.over[index]);
    const from = requests.planned_ns[place] ?? run.planned[0];
    const until = Math.max(requests.completed_ns[place] ?? from, ...ends), margin = Math.max((until - from) / 10, 1000);
    if (own.length) this.select(own[0], false);
    this.show(from - margin, until + margin);
  }
  goToOperation(number) {
    const index = this.run.indexOf.get(number);
    if (index === undefined) return this.say(`no operation ${number} in this timeline`);
    const [from, until] = [this.run.planned[index], this.run.over[index]], margin = Math.max((until - from) / 2, 1000);
    this.select(index, false);
    this.show(from - margin, until + margin);
  }

  /* Marks as bars, one trace for each cause and kind. */
  bars() {
    for (let joined = (this.until - this.from) / this.width(); ; joined *= 2) {
      const groups = new Map();
      let bars = 0;
      for (const {lane, group, from, until, index} of this.run.marks) {
        if (until < this.from || from > this.until) continue;
        if (!groups.has(group)) groups.set(group, {base: [], x: [], y: [], customdata: [], joined: [], newest: new Map()});
        const found = groups.get(group), newest = found.newest.get(lane);
        if (newest !== undefined && from - found.base[newest] - found.x[newest] < joined && until - from < 2 * joined) {
          found.x[newest] = Math.max(found.x[newest], until - found.base[newest]);
          found.joined[newest]++;
          continue;
        }
        found.newest.set(lane, found.base.length);
        for (const [key, value] of [["base", from], ["x", until - from], ["y", lane], ["customdata", index], ["joined", 1]]) {
          found[key].push(value);
        }
        bars++;
      }
      if (bars <= MOST_BARS) return groups;
    }
  }
  colour(group) {
    const [cause, kind] = group.split(" ");
    const full = (isDark() ? report.dark : report.light)[CAUSE_SLOTS[cause] ?? 7];
    const [page, text] = isDark() ? ["#1a1a19", "#ffffff"] : ["#ffffff", "#000000"];
    return kind === "read" ? mixed(full, page, 0.5) : kind === "erase" ? mixed(full, text, 0.5) : full;
  }
  traces() {
    const order = group => Object.keys(CAUSE_SLOTS).indexOf(group.split(" ")[0]) * 3 + OPERATION_KINDS.indexOf(group.split(" ")[1]);
    const nanosPerPx = (this.until - this.from) / this.width();
    const groups = [...this.bars()].sort(([one], [two]) => order(one) - order(two));
    return groups.map(([name, found]) => ({type: "bar", orientation: "h", name, y: found.y, width: 0.86, customdata: found.customdata,
      base: found.base.map(time => time / this.unit[1]), x: found.x.map(time => time / this.unit[1]), meta: {},
      text: found.customdata.map((index, at) => found.joined[at] > 1 ? `${found.joined[at]} marks: zoom in` : this.label(index)),
      textposition: "none", hovertemplate: "%{text}<extra></extra>", marker: {color: this.colour(name), line: {color: isDark() ? "#1a1a19" : "#fcfcfb", width: found.x.map(each => each > 5 * nanosPerPx ? 1 : 0)}}}));
  }
  label(index) {
    const {run} = this, request = run.request[index] ? `request ${run.request[index]}` : "no request";
    const page = run.page[index] === null ? "" : `, page ${run.page[index]}`;
    return `${run.operation[index]}: ${run.cause[index]} ${run.kind[index]}, ${request}<br>block ${run.block[index]}${page}`;
  }

  /* Gates: of the operation that was pointed at last, or all in sight where they are few. */
  arrows() {
    const {run} = this, pairs = [];
    const inSight = index => run.over[index] >= this.from && run.start[index] <= this.until;
    if (this.selected >= 0) {
      for (const earlier of run.before[this.selected]) pairs.push([earlier, this.selected]);
      for (const later of run.after[this.selected]) pairs.push([this.selected, later]);
    } else {
      for (let index = 0; index < run.count && pairs.length <= MOST_ARROWS; index++) {
        if (inSight(index)) for (const earlier of run.before[index]) if (inSight(earlier)) pairs.push([earlier, index]);
      }
      if (pairs.length > MOST_ARROWS) return [];
    }
    return pairs.slice(0, MOST_ARROWS).map(([earlier, later]) => this.arrow(earlier, later));
  }
  /* From where an operation ends to where the other starts; to its plane, where it starts on the bus on which the first ended. */
  arrow(earlier, later) {
    const {run} = this, tail = run.kind[earlier] === "read" ? run.bus[earlier] : run.array[earlier];
    const [head, at] = tail === run.bus[later] ? [run.array[later], run.array_start[later]] : [run.bus[later], run.start[later]];
    const axes = this.place._fullLayout, perX = this.width() / (this.until - this.from), perY = (axes?.yaxis?._length ?? 18 * run.lanes.length) / run.lanes.length;
    const dx = (at - run.over[earlier]) * perX, dy = (head - tail) * perY, length = Math.hypot(dx, dy) || 1, size = 9;
    const point = (along, across) => [(at + (along * dx - across * dy) / length / perX) / this.unit[1],
      head + (along * dy + across * dx) / length / perY].join(",");
    const color = this.ink();
    return {type: "path", xref: "x", yref: "y", line: {color, width: 1.3}, fillcolor: color,
      path: `M${run.over[earlier] / this.unit[1]},${tail}L${point(-size, 0)}M${point(0, 0)}L${point(-size, size / 3)}L${point(-size, -size / 3)}Z`};
  }
  ink() { return printing ? "#000" : getComputedStyle(root).getPropertyValue("--text").trim(); }
  width() { return this.place._fullLayout?.xaxis?._length ?? (printing ? PAPER_PX : Math.max(this.place.clientWidth - 150, 150)); }
  outline() {
    if (this.selected < 0) return [];
    const {run, selected} = this, color = this.ink();
    const busy = run.kind[selected] === "erase" ? run.array_start[selected] : run.transfer_end[selected];
    return [[run.bus[selected], run.start[selected], busy], [run.array[selected], run.array_start[selected], run.array_end[selected]]]
      .map(([lane, from, until]) => ({type: "rect", xref: "x", yref: "y", y0: lane - 0.46, y1: lane + 0.46,
        x0: from / this.unit[1], x1: until / this.unit[1], line: {color, width: 1.5}, fillcolor: "rgba(0,0,0,0)"}));
  }
  shapes() { return [...this.outline(), ...this.arrows()]; }
  draw() {
    const {lanes} = this.run, narrow = !printing && this.place.clientWidth < 560, lane = lanes.length > 48 ? 13 : narrow ? 15 : 18;
    const layout = {height: 110 + lane * lanes.length, margin: {l: narrow ? 68 : 90}, barmode: "overlay", bargap: 0, shapes: this.shapes(),
      xaxis: {title: {text: `time since the start of the measurement (${this.unit[0]})`}, range: [this.from, this.until].map(time => time / this.unit[1]),
        nticks: narrow ? 4 : 10, exponentformat: "none", zeroline: false},
      yaxis: {range: [lanes.length - 0.5, -0.5], fixedrange: true, tickvals: lanes.map((_, index) => index), showgrid: false,
        ticktext: lanes.map(each => each.plane === null ? `<b>${each.name}</b>` : narrow ? `plane ${each.plane}` : each.name),
        tickfont: {size: lanes.length > 48 || narrow ? 9 : 11}, zeroline: false},
      showlegend: true};
    const data = this.traces();
    Plotly.react(this.place, data, arranged(layout, data), {...CONFIG, displayModeBar: false});
    if (!this.listens) {
      this.listens = true;
      this.place.on("plotly_hover", event => this.select(event.points[0].customdata));
      this.place.on("plotly_click", event => this.select(event.points[0].customdata));
      this.place.on("plotly_relayout", event => {
        if ("xaxis.range[0]" in event) this.show(event["xaxis.range[0]"] * this.unit[1], event["xaxis.range[1]"] * this.unit[1]);
        if (event["xaxis.autorange"]) this.show(0, this.last);
      });
    }
    this.say();
  }
  select(index, redraw = true) {
    if (index === this.selected) return;
    this.selected = index;
    this.tell();
    if (redraw) Plotly.relayout(this.place, {shapes: this.shapes()});
  }

  /* Words below the lanes. */
  say(problem) {
    const inSight = this.run.over.filter((over, index) => over >= this.from && this.run.planned[index] <= this.until).length;
    const left = this.run.left_out ? `; ${this.run.left_out.toLocaleString("en")} more are in operations.parquet` : "";
    this.output.textContent = problem ?? `${inSight.toLocaleString("en")} of ${this.run.count.toLocaleString("en")} operations in sight${left}`;
  }
  tell() {
    const {run, selected: at} = this;
    if (at < 0) {
      this.table.replaceChildren(this.row("td", "point at an operation, or give its number"));
      return;
    }
    const request = run.request[at] ? `request ${run.request[at]} (${run.request_kind[at]})` : "no request";
    const page = run.page[at] === null ? "" : `, page ${run.page[at]}`;
    const steps = [["waits for gate and block", run.planned[at], run.ready[at]], ["waits for die and bus", run.ready[at], run.start[at]]];
    const array = ["array", run.array_start[at], run.array_end[at]], moved = ["transfer", run.transfer_start[at], run.transfer_end[at]];
    const command = until => ["command", run.start[at], until];
    if (run.kind[at] === "read") steps.push(command(run.array_start[at]), array, moved);
    if (run.kind[at] === "program") steps.push(command(run.transfer_start[at]), moved, array);
    if (run.kind[at] === "erase") steps.push(command(run.array_start[at]), array);
    run.suspended_at_ns[at].forEach((from, place) => steps.push(["suspended", from, run.resumed_at_ns[at][place]]));
    if (run.delivered[at] !== null) steps.push(["host link", run.end[at], run.delivered[at]]);
    const time = nanoseconds => (nanoseconds / 1e3).toLocaleString("en", {minimumFractionDigits: 3});
    const listed = numbers => numbers.length > 12 ? `${numbers.slice(0, 12).join(", ")} and ${numbers.length - 12} more` : numbers.join(", ");
    const facts = [`block ${run.block[at]}${page}; die ${run.die[at]}, plane ${run.plane[at]}, channel ${run.channel[at]}`,
      `${run.bytes[at].toLocaleString("en")} bytes on the bus`];
    if (run.follows[at].length) facts.push(`its gate was closed by ${listed(run.follows[at])}`);
    if (run.after[at].length) facts.push(`followed by ${listed(run.after[at].map(index => run.operation[index]))}`);
    if (run.behind[at] !== null) facts.push(`on its block behind ${run.behind[at]}`);
    this.table.replaceChildren(
      this.row("th", `operation ${run.operation[at]}: ${run.cause[at]} ${run.kind[at]}, ${request}`, "from (us)", "until (us)", "took (us)"),
      ...steps.map(([name, from, until]) => this.row("td", name, time(from), time(until), time(until - from))),
      ...facts.map(fact => this.row("td", fact)));
  }
  row(tag, first, ...rest) {
    const row = document.createElement("tr");
    const head = document.createElement("th");
    head.textContent = first;
    head.colSpan = rest.length ? 1 : 4;
    row.append(head, ...rest.map(text => Object.assign(document.createElement(tag), {textContent: text})));
    return row;
  }
}
