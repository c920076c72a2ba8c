// Whatever no other view shows by name: objects as two columns, lists of objects as tables. Figures
// have the unit that their key ends in, or that of what they stand in: wall_s.low is in seconds.
S.other = (id, value, above = "") => {
  const plain = (v) => v === null || typeof v !== "object";
  const inline = (v) => plain(v) || (Array.isArray(v) && v.length <= 8 && v.every(plain));
  const show = (key, v) => S.measure(S.unitOf(key) ? key : above, v);
  const flat = S.entries(value).filter(([, v]) => inline(v)).map(([key, v]) => ({ key: S.words(key), value: Array.isArray(v) ? v.map((one) => show(key, one)).join("; ") : v, shown: Array.isArray(v) ? null : show(key, v) }));
  const deep = S.entries(value).filter(([, v]) => !inline(v));
  const parts = [];
  if (flat.length) {
    const words = flat.some((row) => typeof row.value === "string");
    parts.push(S.table(id, flat, [{ key: "key", title: "", word: true },
      { key: "value", title: "value", word: words, cell: (row) => (row.shown === null ? S.name(row.value) : words ? S.name(row.shown) : row.shown) }]));
  }
  for (const [key, v] of deep) {
    if (Array.isArray(v) && v.length === 0) continue;
    parts.push(S.el("h3", {}, S.words(key)));
    const rows = Array.isArray(v) && v.every((r) => r !== null && typeof r === "object" && !Array.isArray(r));
    if (rows) parts.push(S.table(id + "-" + key, v, S.plainColumns(v), { filter: v.length > 10 }));
    else if (Array.isArray(v)) parts.push(S.el("ul", {}, v.slice(0, 200).map((item) => S.el("li", {}, S.name(S.asText(item))))));
    else parts.push(S.other(id + "-" + key, v, key));
  }
  return S.el("div", {}, parts);
};

S.schedulePoints = (list, key) => list.filter((s) => s[key]).map((s) => ({
  schedule: s.schedule + (s.chunks > 1 ? ", " + s.chunks + " chunks" : ""), plan: s[key].plan, step: S.stepOf(s[key]), tokens: s[key].tokens_per_s,
  bubble: s[key].bubble_fraction, most: Math.max(...S.list(s[key].peak_device_gib)), microbatch: s[key].microbatch, recompute: s[key].recompute }));

S.views.push({ id: "schedules", title: "Pipeline schedules", make: (answer) => {
  if (!Array.isArray(answer.schedules)) return null;
  const columns = [{ key: "schedule", title: "schedule", word: true }, { key: "step", title: "step", show: S.seconds }, { key: "tokens", title: "tokens/s", show: (v) => S.digits(v) },
    { key: "bubble", title: "bubble", show: S.percent }, { key: "most", title: "GiB per GPU", show: S.gib }, { key: "microbatch", title: "microbatch" }, { key: "recompute", title: "recompute", word: true }];
  const asked = S.schedulePoints(answer.schedules, "as_asked"), equal = S.schedulePoints(answer.schedules, "at_equal_memory");
  const set = (label, data, colour) => ({ label, data: data.map((p) => ({ x: p.step, y: p.most, p })), backgroundColor: colour, pointRadius: 6 });
  const refused = answer.schedules.filter((s) => s.problem);
  return [S.chart("schedules-scatter", "Memory against step time", { type: "scatter",
    data: { datasets: [set("as asked", asked, S.colour("forward")), set("at equal memory", equal, S.colour("backward"))] },
    options: { parsing: false, scales: { x: S.axis("step time in seconds"), y: S.axis("GiB of the fullest GPU") }, plugins: { legend: S.legendOptions(true),
      tooltip: { callbacks: { label: (item) => item.raw.p.schedule + ": " + S.seconds(item.raw.x) + ", " + S.gib(item.raw.y) } } } } }, 320, null),
  S.el("h3", {}, "As asked"), S.table("schedules-asked", asked, columns),
  S.el("h3", {}, "Each at its best within " + S.gib(answer.memory_gib)), S.table("schedules-equal", equal, columns),
  refused.length ? S.table("schedules-refused", refused, [{ key: "schedule", title: "schedule", word: true }, { key: "problem", title: "why it cannot run", word: true }]) : null];
} });

const shown = new Set(["schema_version", "command", "request", "model", "method", "gpu", "framework", "plan", "verdict", "step_time_s", "tokens_per_s", "mfu", "files", "fits", "profile",
  "bubble_fraction", "breakdown_s", "critical_path_s", "stages", "worst_stage", "ranks", "memory_over_time", "links", "collectives", "plans", "pareto", "answers",
  "score", "runs", "by", "schedules", "scaling", "doubling_stops_paying_at_gpus", "warnings", "memory_gib", "notes", "outlook", "explain", "why_not", "problems",
  "study", "finished", "verdicts", "ranked_by", "more_is_better", "ranking", "rows",
  "offers", "do_not_fit", "too_dear", "budget_usd", "sequences", "models", "gpus"]);
S.views.push({ id: "more", title: "More figures", make: (answer) => {
  const rest = Object.fromEntries(S.entries(answer).filter(([key, v]) => !shown.has(key) && v !== null));
  return Object.keys(rest).length ? [S.el("details", {}, S.el("summary", {}, "Whatever else the answer holds"), S.other("more-figures", rest))] : null;
} });

S.views.push({ id: "notes", title: "Notes and request", make: (answer) => {
  const notes = S.list(answer.warnings).map((w) => "Warning: " + w).concat(S.list(answer.notes)), parts = [];
  if (notes.length) parts.push(S.el("ul", {}, notes.map((n) => S.el("li", {}, S.name(n)))));
  if (answer.request) parts.push(S.other("request", answer.request));
  return parts.length ? parts : null;
} });
