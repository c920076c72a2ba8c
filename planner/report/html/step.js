// One step: where its time goes, the timeline, links and collectives.
S.stepParts = (breakdown) => {
  const parts = {};
  for (const [name, value] of S.entries(breakdown.compute)) parts[name] = value;
  if (breakdown.optimizer) parts.optimizer = breakdown.optimizer;
  for (const [name, value] of S.entries(breakdown.exposed)) parts[name] = (parts[name] || 0) + value;
  for (const name of ["bubble", "host", "offload"]) if (breakdown[name]) parts[name] = breakdown[name];
  return parts;
};
S.stepBars = (id, title, rows) => S.stackedBars(id, title, rows, { unit: "seconds", format: S.seconds });

S.stageAccounts = (id, ranks) => S.stepBars(id, "What the GPU of each stage does with the step",
  ranks.map((rank) => {
    const parts = Object.assign({}, rank.busy_s);
    for (const [name, value] of S.entries(rank.exposed_s)) parts[name] = (parts[name] || 0) + value;
    parts.bubble = rank.bubble_s;
    return { label: "stage " + rank.stage, parts };
  }));

S.linkBars = (id, links, step) => {
  const rows = links.map((l) => ({ what: "stage " + l.stage + ", " + l.link, share: l.busy_s / step, busy: l.busy_s }));
  return S.chart(id, "How much of the step each link is in use", {
    type: "bar",
    data: { labels: rows.map((r) => S.short(r.what)), datasets: [{ label: "in use", data: rows.map((r) => r.share), backgroundColor: S.colour("tensor_comm") }] },
    options: {
      indexAxis: "y", scales: { x: S.axis("share of the step", { min: 0, max: 1 }), y: S.axis("", { ticks: { autoSkip: rows.length > 40 } }) },
      plugins: { legend: { display: false }, tooltip: { callbacks: { label: (item) => S.percent(item.parsed.x) } } },
    },
  }, Math.min(1200, 70 + 22 * rows.length),
  S.table(id + "-figures", rows, [{ key: "what", title: "link", word: true }, { key: "busy", title: "in use", show: S.seconds }, { key: "share", title: "share", show: S.percent }]));
};

S.collectives = (id, list) => S.table(id, list, [
  { key: "stage", title: "stage" }, { key: "kind", title: "for", word: true, show: S.words },
  { key: "collective", title: "collective", word: true, show: S.words },
  { key: "size_bytes", title: "MiB", show: (v) => S.digits(v / 1048576) }, { key: "ranks", title: "ranks" }, { key: "nodes", title: "nodes" },
  { key: "algorithm", title: "algorithm", word: true }, { key: "protocol", title: "protocol", word: true },
  { key: "time_s", title: "each", show: S.seconds }, { key: "bus_gb_per_s", title: "bus GB/s", show: (v) => S.digits(v) },
  { key: "per_step", title: "per step", show: (v) => S.digits(v) }], { filter: true, first: 30 });

S.timelinePart = (model) => {
  const view = new S.TimelineView(model);
  S.timelines.push(view);
  const kinds = [...new Set(model.rows.filter((r) => !r.link).flatMap((r) => [...new Set(r.kind)]))];
  return S.el("div", {}, S.el("h3", {}, "Timeline"),
    model.merged ? S.el("p", { class: "soft" }, "Neighbouring tasks of one pass are drawn as one; --trace writes all of them.") : null,
    model.left_out ? S.el("p", { class: "soft", "data-left-out": model.left_out }, "For the file's sake " + model.left_out + " stages between these are left out; --trace has them all.") : null,
    S.legend(kinds), view.node);
};

// Everything about one plan: `simulation` as simulate --json has it.
S.planParts = (id, simulation, timeline) => {
  const model = timeline ? S.decodeTimeline(timeline) : null;
  const step = S.stepOf(simulation), stages = S.list(simulation.stages), parts = [];
  if (stages.length) parts.push(S.stageBars(id + "-memory", stages));
  if (S.list(simulation.memory_over_time).length) parts.push(S.memoryOverTime(id + "-over-time", simulation.memory_over_time, model, stages));
  const phases = S.phases(id + "-phases", stages, simulation.worst_stage || 0);
  if (phases) parts.push(phases);
  if (simulation.breakdown_s) parts.push(S.stepBars(id + "-step", "Where the time of a step goes, on the slowest GPU", [{ label: "step", parts: S.stepParts(simulation.breakdown_s) }]));
  if (S.list(simulation.ranks).length > 1) parts.push(S.stageAccounts(id + "-stages", simulation.ranks));
  if (S.entries(simulation.critical_path_s).length) parts.push(S.stepBars(id + "-path", "The critical path, by kind of work", [{ label: "path", parts: simulation.critical_path_s }]));
  if (model && model.rows.length) parts.push(S.timelinePart(model));
  if (S.list(simulation.links).length) parts.push(S.linkBars(id + "-links", simulation.links, step));
  if (S.list(simulation.collectives).length) parts.push(S.el("h3", {}, "Collectives"), S.collectives(id + "-collectives", simulation.collectives));
  if (simulation.outlook) parts.push(S.el("h3", {}, "The whole run"), S.other(id + "-outlook", simulation.outlook));
  return parts;
};
