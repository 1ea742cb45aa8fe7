// The state that a page shows: flash by the drive's time, victims, events, and series of figures.
//
// Flash changes when a request is planned. A page with an operation under way therefore keeps the earlier look until
// the operation has ended. Ignored: drawing.

export const STALE = -2, FREE = -1, USER = 254;
const LOG_LENGTH = 200;
const ORDER = 0, KIND = 1, CAUSE = 2, DIE = 3, BLOCK = 4, PAGE = 5, STAGE = 6;

export function duration(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (ns >= size) return `${(ns / size).toPrecision(3)} ${unit}`;
  }
  return `${ns} ns`;
}

export function size(bytes) {
  for (const [unit, each] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (bytes >= each) return `${+(bytes / each).toFixed(1)} ${unit}`;
  }
  return `${bytes} B`;
}

const COPIES = new Set(["gc", "merge"]);

export class Model {
  // `hot` is the share of the addresses, from 0 on, that most writes go to; 0 without.
  constructor(shape, view, rule, hot = 0) {
    Object.assign(this, { shape, rule, hot });
    this.view = this.coloured(view);
    this.cells = view.cells.slice();
    this.busy = new Map(); // page -> operation that programs or reads it
    this.erasing = new Map(); // block -> operation
    this.victims = new Map(); // block -> valid subpages when it was chosen
    this.log = [];
    this.latencies = [];
    this.amplification = [];
    this.written = 0;
    this.requests = 0;
    this.lost = 0;
    this.happening = "";
    this.counts = { read: 0, program: 0, erase: 0, copies: 0 };
  }

  // The view with hot and cold data as two owners, if the scene tells them apart.
  coloured(view) {
    if (!this.hot) return view;
    const { bytes, subpage_bytes: each } = this.shape, end = (bytes * this.hot) / each;
    view.cells.forEach((owner, cell) => {
      if (owner >= 0 && owner !== USER) view.cells[cell] = view.logical[cell] < end ? 1 : 0;
    });
    return view;
  }

  pageOf(operation) {
    return operation[BLOCK] * this.shape.pages_per_block + operation[PAGE];
  }

  dieOf(block) {
    return this.shape.die_of_plane[Math.floor(block / this.shape.blocks_per_plane)];
  }

  perBlock() {
    return this.shape.pages_per_block * this.shape.subpages_per_page;
  }

  note(text, time, kind = "") {
    this.log.unshift({ text, time, kind });
    this.log.length = Math.min(this.log.length, LOG_LENGTH);
    this.happening = text;
  }

  // Takes the next view of the drive.
  take(view) {
    const before = this.view;
    this.view = this.coloured(view);
    view.planned.forEach((operation) => this.plan(operation, before, view));
    view.ended.forEach(([operation, time]) => this.end(operation, time));
    const noted = view.cut ? view.completed.filter((request) => request.status === "done") : view.completed;
    noted.forEach((request) => this.complete(request));
    if (view.cut) this.cut(view);
    this.busy.clear();
    this.erasing.clear();
    for (const operation of view.operations) {
      if (operation[KIND] === "erase") this.erasing.set(operation[BLOCK], operation);
      else this.busy.set(this.pageOf(operation), operation);
    }
    for (const block of this.victims.keys()) {
      const isEmpty = view.programs[block * this.shape.pages_per_block] === 0;
      if (isEmpty && !this.erasing.has(block)) this.victims.delete(block);
    }
    this.look();
  }

  // Updates the look of each page without a program or erase under way.
  look() {
    const { pages_per_block: pages, subpages_per_page: width } = this.shape;
    for (let page = 0; page < this.view.programs.length; page++) {
      const block = Math.floor(page / pages);
      const programs = this.busy.get(page)?.[KIND] === "program";
      for (let cell = page * width; cell < (page + 1) * width; cell++) {
        const now = this.view.cells[cell];
        // Data may become stale at once, because the map changes when the request is planned.
        if (this.erasing.has(block)) this.cells[cell] = this.cells[cell] === FREE ? FREE : STALE;
        else if (!programs) this.cells[cell] = now;
        else if (this.cells[cell] >= 0 && now === STALE) this.cells[cell] = STALE;
      }
    }
  }

  plan(operation, before, view) {
    const [, kind, cause, die, block] = operation;
    if (!COPIES.has(cause) || kind === "program" || this.victims.has(block)) return;
    // A merge, and a file system, read blocks that they do not erase.
    if ((cause === "merge" || this.shape.has_files) && kind !== "erase") return;
    const full = this.perBlock();
    const valid = before.valid?.[block];
    this.victims.set(block, valid ?? 0);
    const name = `Block ${block} of die ${die}`;
    if (valid === undefined || valid === null) {
      this.note(`${name} is to be erased.`, view.now, "victim");
    } else if (cause === "merge") {
      this.note(`${name} is to be erased after a merge: ${valid} of ${full} subpages were valid.`, view.now, "victim");
    } else {
      const why = this.why(block, before);
      this.note(`${name} is the victim: ${valid} of ${full} subpages valid. ${why}`, view.now, "victim");
    }
  }

  // The rule of the policy, and the other full blocks of the plane.
  why(block, view) {
    const { blocks_per_plane: width, pages_per_block: pages } = this.shape;
    const first = block - (block % width);
    const others = [];
    for (let other = first; other < first + width; other++) {
      const isFull = view.programs[(other + 1) * pages - 1] > 0 && !view.bad[other];
      if (other !== block && isFull && !this.victims.has(other)) others.push(view.valid[other]);
    }
    const rule = this.rule ? `The policy takes ${this.rule}. ` : "";
    if (!others.length) return rule;
    return `${rule}Other full blocks of its plane have ${Math.min(...others)} to ${Math.max(...others)}.`;
  }

  end(operation, time) {
    const [, kind, cause, die, block, page] = operation;
    this.counts[kind] += 1;
    const place = `block ${block}${kind === "erase" ? "" : `, page ${page}`} of die ${die}`;
    if (kind === "erase") {
      this.victims.delete(block);
      const first = block * this.perBlock();
      for (let cell = first; cell < first + this.perBlock(); cell++) this.cells[cell] = FREE;
      this.note(`Erased ${place}: erase ${this.view.erases[block]} of this block.`, time, "erase");
    } else if (kind === "program") {
      const copied = COPIES.has(cause);
      this.counts.copies += copied ? 1 : 0;
      this.note(copied ? `Copied valid data to ${place}.` : `Programmed ${place} (${cause}).`, time);
    } else {
      this.note(COPIES.has(cause) ? `Read valid data from ${place} to copy it.` : `Read ${place} (${cause}).`, time);
    }
  }

  complete(request) {
    if (request.status !== "done") {
      this.note(`A ${request.kind} of ${size(request.bytes)} ended: ${request.status}.`, request.at, "victim");
      return;
    }
    this.requests += 1;
    if (request.kind === "write") this.written += request.bytes;
    this.latencies.push({ kind: request.kind, ns: request.latency });
    if (this.latencies.length > 600) this.latencies.shift();
    const took = duration(request.latency);
    this.note(`The ${request.kind} at ${size(request.offset)} completed after ${took}.`, request.at);
  }

  cut(view) {
    const lost = view.completed.filter((request) => request.status === "power lost").length;
    const time = view.cut.recovered - view.cut.at;
    this.victims.clear();
    const requests = `${lost} ${lost === 1 ? "request" : "requests"} in flight failed`;
    const text = `The power failed and returned: ${requests}. Recovery from flash took ${duration(time)}.`;
    this.note(text, view.now, "victim");
    this.cells = view.cells.slice();
  }

  // Takes the figures of the simulator.
  measure(figures) {
    this.figures = figures;
    const value = figures.write_amplification;
    const last = this.amplification.at(-1);
    if (value === null || last?.requests === this.requests) return;
    this.amplification.push({ requests: this.requests, value });
    if (this.amplification.length > 400) this.amplification = this.amplification.filter((_, at) => at % 2 === 0);
  }

  // Operations of each die: running ones first.
  queues() {
    const queues = Array.from({ length: this.shape.dies }, () => []);
    const rank = { works: 0, suspended: 1, moves: 2, queued: 3, waits: 4 };
    this.view.operations.forEach((operation) => queues[operation[DIE]].push(operation));
    queues.forEach((queue) => queue.sort((one, two) => rank[one[STAGE]] - rank[two[STAGE]] || one[ORDER] - two[ORDER]));
    return queues;
  }
}
