// Plans side by side: table, memory against step time, and one of them opened.
S.planColumns = (plans) => {
  const has = (test) => plans.some(test), columns = [];
  const add = (key, title, get, more) => columns.push(Object.assign({ key, title, get }, more));
  if (has((p) => p.method)) add("method", "method", (p) => p.method, { word: true });
  if (has((p) => p.gpu)) add("gpu", "GPU", (p) => p.gpu, { word: true });
  if (new Set(plans.map((p) => p.cluster)).size > 1) add("cluster", "GPUs", (p) => p.cluster, { word: true });
  add("plan", "plan", (p) => p.plan, { word: true });
  add("verdict", "verdict", (p) => p.verdict || "cannot run", { word: true, verdict: true });
  if (has((p) => S.stepOf(p) !== null)) add("step", "step", S.stepOf, { show: S.seconds });
  if (has((p) => S.isNumber(p.tokens_per_s))) add("tokens", "tokens/s", (p) => p.tokens_per_s, { show: (v) => S.digits(v) });
  if (has((p) => S.deviceOf(p) !== null)) add("device", "GiB per GPU", S.deviceOf, { show: S.gib });
  if (has((p) => S.isNumber(p.margin_gib))) add("margin", "margin", (p) => p.margin_gib, { show: S.gib });
  if (has((p) => S.isNumber(p.bubble_fraction))) add("bubble", "bubble", (p) => p.bubble_fraction, { show: S.percent });
  if (has((p) => S.isNumber(p.exposed_communication_s))) add("exposed", "exposed", (p) => p.exposed_communication_s, { show: S.seconds });
  if (has((p) => S.isNumber(p.mfu))) add("mfu", "MFU", (p) => p.mfu, { show: S.percent });
  if (has((p) => S.isNumber(p.host_ram_gib))) add("host", "host RAM", (p) => p.host_ram_gib, { show: S.gib });
  for (const key of ["usd_per_million_tokens", "hours", "energy_kwh"])
    if (has((p) => S.isNumber(p[key]))) add(key, S.words(key), (p) => p[key], { show: (v) => S.measure(key, v) });
  if (has((p) => p.problem)) add("problem", "why not", (p) => p.problem, { word: true });
  return columns;
};

S.planTable = (plans) => {
  const columns = S.planColumns(plans);
  const rows = plans.map((plan) => Object.fromEntries(columns.map((c) => [c.key, c.get(plan)])));
  for (const column of columns) {
    if (column.verdict) column.cell = (row) => S.verdict(row.verdict === "cannot run" ? undefined : row.verdict);
    if (column.key === "plan")
      column.cell = (row, i) => S.el("button", { type: "button", class: "link open-plan", onclick: () => S.open(i) }, S.plan(row.plan || "plan"));
  }
  return S.table("plan-table", rows, columns, { filter: plans.length > 3, open: true });
};

// Those that no other beats in both: less memory and less time.
S.paretoFront = (points) => points
  .filter((p) => !points.some((q) => q !== p && q.x <= p.x && q.y <= p.y && (q.x < p.x || q.y < p.y)))
  .sort((a, b) => a.x - b.x);

S.pareto = (plans) => {
  const points = plans.map((plan, i) => ({ x: S.stepOf(plan), y: S.deviceOf(plan), i, verdict: plan.verdict }))
    .filter((p) => p.x !== null && p.y !== null);
  if (points.length < 2) return null;
  const colours = { fits: S.css("--good"), tight: S.css("--warn") };
  const sets = ["fits", "tight", "does_not_fit"].map((verdict) => ({
    label: S.words(verdict), data: points.filter((p) => p.verdict === verdict), type: "scatter", pointRadius: 6, pointHoverRadius: 8,
    backgroundColor: colours[verdict] || S.css("--bad"), borderColor: S.css("--back"),
    pointStyle: { fits: "circle", tight: "triangle", does_not_fit: "crossRot" }[verdict], pointBorderColor: colours[verdict] || S.css("--bad"),
  })).filter((set) => set.data.length);
  const front = S.paretoFront(points.filter((p) => p.verdict !== "does_not_fit"));
  sets.push({ label: "no other is better in both", type: "line", data: front, borderColor: S.css("--soft"), backgroundColor: S.css("--soft"), borderWidth: 1.5, pointRadius: 0, stepped: "after" });
  return S.chart("pareto", "Memory against step time: click a plan to open it", {
    type: "scatter", data: { datasets: sets },
    options: {
      parsing: false,
      onClick: (event, items) => { if (items.length) setTimeout(S.open, 0, items[0].element.$context.raw.i); },
      scales: { x: S.axis("step time in seconds", { beginAtZero: false }), y: S.axis("GiB per GPU", { beginAtZero: false }) },
      plugins: { legend: S.legendOptions(true), tooltip: { callbacks: {
        label: (item) => S.short(S.labelOf(plans[item.raw.i]), 60) + ": " + S.seconds(item.raw.x) + ", " + S.gib(item.raw.y) } } },
    },
  }, 340, null);
};

S.advice = (plans) => S.adviceOf(plans, "advice", (p) => p.verdict === "tight" ? "What would leave room: " : "What would make it fit: ")
  .concat(S.adviceOf(plans, "faster", () => "What would make it faster: "));
S.adviceOf = (plans, key, title) => plans.filter((p) => S.list(p[key]).length).map((p) => S.el("div", {},
  S.el("h3", {}, title(p), S.name(S.labelOf(p))),
  S.table(key + "-" + plans.indexOf(p), p[key], [
    { key: "change", title: "change", word: true }, { key: "verdict", title: "verdict", word: true, cell: (r) => S.verdict(r.verdict) },
    { key: "needed_gib", title: "needs per GPU", show: S.gib }, { key: "memory_effect_gib", title: "effect", show: S.gib },
    { key: "time_ratio", title: "time per token", show: (v) => S.digits(v) + " x" }, { key: "plan", title: "plan", word: true, cell: (r) => S.plan(r.plan || "") }])));

S.reaches = { longest_sequence: "longest sequence, tokens", longest_sequence_with_room: "with room to spare",
  largest_microbatch: "largest microbatch, sequences", largest_microbatch_with_room: "with room to spare",
  largest_rank: "largest LoRA rank", largest_rank_with_room: "with room to spare" };
S.reach = (plans) => plans.filter((p) => p.reach).map((p) => S.el("div", {},
  S.el("h3", {}, "How far it goes: ", S.name(S.labelOf(p))),
  S.table("reach-" + plans.indexOf(p), S.entries(S.reaches).filter(([key]) => key in p.reach).map(([key, title]) => Object.assign({ of: title }, p.reach[key])), [
    { key: "of", title: "", word: true }, { key: "value", title: "at most", show: (v) => S.digits(v) },
    { key: "verdict", title: "verdict", word: true, cell: (r) => r.verdict ? S.verdict(r.verdict) : "none fits" },
    { key: "device_gib", title: "per GPU", show: S.gib }, { key: "tokens_per_s", title: "tokens/s", show: (v) => S.digits(v) },
    { key: "plan", title: "plan", word: true, cell: (r) => S.plan(r.plan || "") }])));

S.views.push({ id: "plans", title: "Plans", make: (answer) => {
  const plans = S.plansOf(answer), front = S.list(answer.pareto).length;
  if (plans.length === 0 || Array.isArray(answer.stages)) return null;
  const rows = plans.filter((p) => p.breakdown_gib).map((p) => ({ label: S.labelOf(p), parts: p.breakdown_gib, mark: p.capacity_gib }));
  const steps = plans.filter((p) => p.breakdown_s).map((p) => ({ label: S.labelOf(p), parts: S.stepParts(p.breakdown_s) }));
  return [S.planTable(plans), S.pareto(plans),
    front ? S.el("p", { class: "soft" }, front + " of these are not beaten in time, memory and rent at once by any other plan.") : null,
    rows.length ? S.memoryBars("memory", "Memory of the fullest GPU of each plan at its peak", rows) : null,
    steps.length ? S.stepBars("steps", "Where the time of a step goes", steps) : null, S.advice(plans), S.reach(plans)];
} });

// The opened plan in full, where the file carries its step.
S.views.push({ id: "plan", title: "One plan in full", make: (answer, details) => {
  const plans = S.plansOf(answer);
  if (plans.length === 0) return null;
  if (Array.isArray(answer.stages)) return S.planParts("one", answer, details.length ? details[0].timeline : null);
  if (details.length === 0) return null;
  const detail = details.find((d) => d.of === S.opened), plan = plans[S.opened];
  const head = S.el("p", { id: "opened", "data-opened": S.opened }, plan ? [S.verdict(plan.verdict), " ", plan.gpu ? [S.name(S.labelOf(plan)), ": "] : null, S.plan(plan.plan || "")] : "");
  if (!detail) return [head, plan && S.planWords(plan) ? S.el("p", {}, S.planWords(plan) + ".") : null,
    S.el("p", { class: "soft" }, plan && plan.problem ? [S.name(plan.problem)] : "This file has no room for every step of this plan; shardwise simulate --plan ... --report draws them.")];
  return [head, S.planParts("one", detail.simulation, detail.timeline)];
} });
