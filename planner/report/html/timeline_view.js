// The timeline's canvas: zoom, pan, hover, search. Time runs from left to right, a row per lane of a
// stage's first rank and per link.
S.TimelineView = class {
  constructor(model) {
    this.model = model;
    this.rows = model.rows;
    this.from = 0;
    this.to = model.end;
    this.hits = [];
    this.hit = -1;
    this.chosen = null;
    this.pointers = new Map();
    this.canvas = S.el("canvas", {
      tabindex: 0, role: "application",
      "aria-label": "Timeline of the step. Arrow keys move, plus and minus zoom, Home shows the whole step.",
    });
    this.status = S.el("p", { class: "soft", role: "status" }, "Hover over a slice, or click it.");
    this.tip = S.el("div", { class: "tip", hidden: true });
    this.box = S.el("div", { class: "timeline" }, this.canvas);
    this.node = S.el("div", { class: "timeline-view" }, this.controls(), this.box, this.tip, this.status);
    this.listen();
    S.later(() => this.resize());
  }

  controls() {
    const button = (text, label, job) => S.el("button", { type: "button", "aria-label": label, onclick: job }, text);
    this.search = S.el("input", { type: "search", "aria-label": "Search the timeline", placeholder: "search: F3, gather",
      oninput: () => this.find(this.search.value),
      onkeydown: (e) => { if (e.key === "Enter") this.step(e.shiftKey ? -1 : 1); } });
    this.found = S.el("span", { class: "soft", role: "status" });
    const names = ["all rows", "computing only", "links only"];
    const choice = S.el("select", { "aria-label": "Rows", onchange: () => this.choose(choice.selectedIndex) },
      names.map((n) => S.el("option", {}, n)));
    return S.el("div", { class: "controls" }, button("+", "Zoom in", () => this.zoom(0.5)),
      button("\u2212", "Zoom out", () => this.zoom(2)), button("whole step", "Show the whole step", () => this.show(0, this.model.end)),
      choice, this.search, button("\u2039", "Previous match", () => this.step(-1)), button("\u203a", "Next match", () => this.step(1)), this.found);
  }

  choose(which) {
    const keep = [() => true, (r) => r.name === "compute", (r) => r.link][which];
    this.rows = this.model.rows.filter(keep);
    this.resize();
  }

  show(from, to) {
    const least = Math.min(this.model.end, 50), length = Math.min(Math.max(to - from, least), this.model.end);
    this.from = Math.min(Math.max(0, from), this.model.end - length);
    this.to = this.from + length;
    this.draw();
  }
  zoom(factor, around = (this.from + this.to) / 2) {
    this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }
  pan(share) { this.show(this.from + share * (this.to - this.from), this.to + share * (this.to - this.from)); }

  find(text) {
    this.hits = S.searchTimeline(this.model, text);
    this.hit = -1;
    this.found.textContent = text.trim() === "" ? "" : this.hits.length + " found";
    this.draw();
  }
  step(by) {
    if (this.hits.length === 0) return;
    this.hit = (this.hit + by + this.hits.length) % this.hits.length;
    const { row, at } = this.hits[this.hit], r = this.model.rows[row];
    const length = Math.max((r.end[at] - r.start[at]) * 8, 100);
    this.chosen = { row: r, at };
    this.show((r.start[at] + r.end[at]) / 2 - length / 2, (r.start[at] + r.end[at]) / 2 + length / 2);
    this.found.textContent = this.hit + 1 + " of " + this.hits.length;
    this.status.textContent = this.describe(r, at);
  }

  describe(row, at) {
    const start = row.start[at] / 1e9, length = (row.end[at] - row.start[at]) / 1e9;
    return row.title(at) + "\n" + row.label + "\nfrom " + S.seconds(start) + ", takes " + S.seconds(length);
  }

  resize() {
    const width = this.box.clientWidth || 300;
    this.left = width < 600 ? 92 : 180;
    this.top = 22;
    this.line = Math.max(6, Math.min(18, Math.floor(9000 / Math.max(1, this.rows.length))));
    const height = this.top + this.line * this.rows.length + 4, ratio = Math.min(2, window.devicePixelRatio || 1);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = height + "px";
    this.ratio = ratio;
    this.width = width;
    this.height = height;
    this.draw();
  }
  x(ns) { return this.left + ((ns - this.from) / (this.to - this.from)) * (this.width - this.left); }
  time(x) { return this.from + ((x - this.left) / (this.width - this.left)) * (this.to - this.from); }

  // The slice at a point of the canvas, in CSS pixels.
  pick(x, y) {
    const row = this.rows[Math.floor((y - this.top) / this.line)];
    if (!row || x < this.left) return null;
    const at = row.find(this.time(x));
    return at < 0 ? null : { row, at };
  }

  draw() {
    const c = this.canvas.getContext("2d");
    if (!this.width) return;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = S.css("--back");
    c.fillRect(0, 0, this.width, this.height);
    this.scale(c);
    const found = new Map();
    for (const hit of this.hits) {
      const row = this.model.rows[hit.row];
      if (!found.has(row)) found.set(row, new Set());
      found.get(row).add(hit.at);
    }
    this.rows.forEach((row, i) => this.drawRow(c, row, this.top + i * this.line, found));
  }

  scale(c) {
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    const span = (this.to - this.from) / 1e9, rough = span / Math.max(2, (this.width - this.left) / 110);
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
    for (let k = Math.ceil(this.from / 1e9 / step); k * step <= this.to / 1e9; ++k) {
      const x = this.x(k * step * 1e9);
      c.fillStyle = S.css("--grid");
      c.fillRect(x, this.top - 4, 1, this.height);
      c.fillStyle = S.css("--soft");
      c.fillText(S.seconds(Number((k * step).toPrecision(9))), x + 3, 10);
    }
  }

  drawRow(c, row, y, found) {
    const high = this.line - 2, matches = found.get(row);
    let last = -1;
    for (let i = row.first(this.from); i < row.length && row.start[i] < this.to; ++i) {
      const x = Math.max(this.left, this.x(row.start[i])), wide = Math.max(1, Math.min(this.x(row.end[i]), this.width) - x);
      const hit = matches && matches.has(i);
      if (Math.floor(x + wide) <= last && !hit) continue;
      last = Math.floor(x + wide);
      c.globalAlpha = this.hits.length && !hit ? 0.25 : 1;
      c.fillStyle = S.colour(row.link ? row.kind[i].split(" + ")[0] : row.kind[i]);
      c.fillRect(x, y, wide > 3 ? wide - 0.5 : wide, high);
      if (wide > 22 && high >= 12) {
        c.fillStyle = "#000000";
        c.fillText(row.mark(i), x + 3, y + high / 2 + 1, wide - 5);
      }
      if (this.chosen && this.chosen.row === row && this.chosen.at === i) {
        c.strokeStyle = S.css("--mark");
        c.lineWidth = 2;
        c.strokeRect(x, y, wide, high);
      }
    }
    c.globalAlpha = 1;
    c.fillStyle = S.css("--back");
    c.fillRect(0, y - 1, this.left - 1, this.line);
    c.fillStyle = S.css("--text");
    if (high >= 8) c.fillText(this.width < 600 ? row.label.replace("stage ", "") : row.label, 4, y + high / 2 + 1, this.left - 8);
  }

  listen() {
    const at = (e) => {
      const box = this.canvas.getBoundingClientRect();
      return [e.clientX - box.left, e.clientY - box.top];
    };
    this.canvas.addEventListener("pointerdown", (e) => {
      this.pointers.set(e.pointerId, e.clientX);
      this.moved = 0;
      this.canvas.setPointerCapture(e.pointerId);
    });
    this.canvas.addEventListener("pointermove", (e) => this.move(e, at(e)));
    const up = (e) => {
      if (this.pointers.delete(e.pointerId) && this.moved < 4) this.click(at(e));
    };
    this.canvas.addEventListener("pointerup", up);
    this.canvas.addEventListener("pointercancel", (e) => this.pointers.delete(e.pointerId));
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && document.activeElement !== this.canvas) return;
      e.preventDefault();
      if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan((e.deltaX || e.deltaY) / 1000);
      else this.zoom(Math.pow(1.002, e.deltaY), this.time(at(e)[0]));
    }, { passive: false });
    this.canvas.addEventListener("keydown", (e) => this.key(e));
    window.addEventListener("resize", () => { if (this.node.isConnected) this.resize(); });
  }

  move(e, [x, y]) {
    if (!this.pointers.has(e.pointerId)) return this.hover(e, x, y);
    const before = this.pointers.get(e.pointerId), by = e.clientX - before;
    const others = [...this.pointers.entries()].filter(([id]) => id !== e.pointerId);
    this.pointers.set(e.pointerId, e.clientX);
    this.moved += Math.abs(by);
    if (others.length === 1) {
      const apart = Math.abs(before - others[0][1]), now = Math.abs(e.clientX - others[0][1]);
      if (apart > 0 && now > 0) this.zoom(apart / now);
    } else {
      this.pan(-by / (this.width - this.left));
    }
  }
  hover(e, x, y) {
    const hit = this.pick(x, y);
    this.tip.hidden = hit === null;
    if (hit === null) return;
    this.tip.textContent = this.describe(hit.row, hit.at);
    this.tip.style.left = Math.min(e.clientX + 12, window.innerWidth - 240) + "px";
    this.tip.style.top = e.clientY + 16 + "px";
  }
  click([x, y]) {
    this.chosen = this.pick(x, y);
    this.status.textContent = this.chosen ? this.describe(this.chosen.row, this.chosen.at) : "";
    this.draw();
  }
  key(e) {
    const jobs = {
      ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5),
      "-": () => this.zoom(2), Home: () => this.show(0, this.model.end),
    };
    if (!Object.hasOwn(jobs, e.key)) return;
    e.preventDefault();
    jobs[e.key]();
  }
};
