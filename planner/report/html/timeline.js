// The timeline's data: rows of slices, from the columns that the report carries.
S.Row = class {
  constructor(stage, name, link) {
    this.stage = stage;
    this.name = name;
    this.link = link;
    this.start = [];
    this.end = [];
    this.kind = [];
    this.tags = [];
  }
  get label() { return "stage " + this.stage + " \u00b7 " + (this.link ? this.name : S.words(this.name)); }
  get length() { return this.start.length; }
  // The slice that runs at `ns`, or -1.
  find(ns) {
    const at = this.first(ns);
    return at < this.length && this.start[at] <= ns && ns < this.end[at] ? at : -1;
  }
  // The first slice that ends after `ns`.
  first(ns) {
    let low = 0, high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end[middle] > ns) high = middle;
      else low = middle + 1;
    }
    return low;
  }
  // "F12", "B3'": as the terminal's drawing names passes; other work by its name.
  mark(i) {
    const letter = { forward: "F", backward: "B", backward_weight: "W", recompute: "R" }[this.kind[i]];
    return letter && !this.link ? letter + this.tags[i][0] + "'".repeat(this.tags[i][1]) : S.words(this.kind[i]);
  }
  title(i) {
    if (this.link) return S.words(this.kind[i]);
    const [microbatch, chunk, layer, tasks] = this.tags[i];
    const pass = { forward: "forward", backward: "backward", backward_weight: "weight half of backward", recompute: "recomputation" }[this.kind[i]];
    const where = pass ? " of microbatch " + microbatch + (chunk ? ", chunk " + chunk : "") : "";
    return (pass || S.words(this.kind[i])) + where + (tasks > 1 ? ", " + tasks + " tasks" : layer ? ", layer " + layer : "");
  }
};

S.decodeTimeline = (timeline) => {
  const rows = [];
  for (const lane of S.list(timeline.lanes)) {
    const row = new S.Row(lane.stage, lane.lane, false);
    let at = 0;
    for (let i = 0; i + 6 < lane.slices.length; i += 7) {
      at += lane.slices[i];
      row.start.push(at);
      at += lane.slices[i + 1];
      row.end.push(at);
      row.kind.push(timeline.kinds[lane.slices[i + 2]]);
      row.tags.push(lane.slices.slice(i + 3, i + 7));
    }
    rows.push(row);
  }
  for (const link of S.list(timeline.links)) {
    const row = new S.Row(link.stage, link.link, true);
    let at = 0;
    for (let i = 0; i + 2 < link.slices.length; i += 3) {
      at += link.slices[i];
      row.start.push(at);
      at += link.slices[i + 1];
      row.end.push(at);
      row.kind.push(timeline.users[link.slices[i + 2]]);
      row.tags.push([0, 0, 0, 1]);
    }
    rows.push(row);
  }
  rows.sort((a, b) => a.stage - b.stage);
  return { end: timeline.end_ns, rows, merged: timeline.merged, left_out: timeline.stages_left_out };
};

// Slices whose title holds `text`, in order of time: [{row, at}].
S.searchTimeline = (model, text) => {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return [];
  const hits = [];
  model.rows.forEach((row, r) => {
    for (let i = 0; i < row.length; ++i)
      if (row.mark(i).toLowerCase() === wanted || row.title(i).toLowerCase().includes(wanted)) hits.push({ row: r, at: i });
  });
  hits.sort((a, b) => model.rows[a.row].start[a.at] - model.rows[b.row].start[b.at]);
  return hits;
};
