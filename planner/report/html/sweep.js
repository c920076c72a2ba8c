// A sweep: group by group, what does the same work in order of merit, and what the best cost.
S.mostBars = 40;

S.sweepMeasure = (answer) => String(answer.ranked_by).replaceAll("_", " ");
S.sweepLabel = (row, keys) => [row.gpus, ...keys.map((k) => S.asText(S.valueAt(row.request || {}, k))), row.plan].filter(Boolean).join("  ");

S.sweepBars = (id, answer, rows, keys) => {
  const best = rows.slice(0, S.mostBars), value = (row) => row[answer.ranked_by];
  return S.chart(id, S.sweepMeasure(answer) + (rows.length > best.length ? ": the first " + best.length + " of " + rows.length : ""), {
    type: "bar",
    data: { labels: best.map((row) => S.short(S.sweepLabel(row, keys), 48)),
      datasets: [{ label: S.sweepMeasure(answer), data: best.map(value), backgroundColor: best.map((row) => (row.verdict === "tight" ? S.css("--warn") : S.colour("forward"))) }] },
    options: { indexAxis: "y", scales: { x: S.axis(S.sweepMeasure(answer) + (answer.more_is_better ? ", more is better" : ", less is better")), y: S.axis("", { ticks: { autoSkip: false } }) },
      plugins: { legend: S.legendOptions(false), tooltip: { callbacks: {
        title: (items) => (items.length ? S.short(S.sweepLabel(best[items[0].dataIndex], keys), 80) : ""),
        label: (item) => "point " + best[item.dataIndex].point + ": " + S.digits(item.parsed.x, 4) } } } },
  }, 80 + 24 * best.length, null);
};

// One colour for each card: which of them is worth its rent.
S.sweepScatter = (id, rows) => {
  const priced = rows.filter((row) => S.isNumber(row.usd_per_million_tokens) && S.isNumber(row.tokens_per_s));
  const cards = [...new Set(priced.map((row) => row.gpu))];
  if (priced.length < 2) return null;
  return S.chart(id, "Rent of a million tokens against tokens per second", { type: "scatter",
    data: { datasets: cards.map((card) => ({ label: S.short(card), pointRadius: 6, backgroundColor: S.colour(card),
      data: priced.filter((row) => row.gpu === card).map((row) => ({ x: row.tokens_per_s, y: row.usd_per_million_tokens, row })) })) },
    options: { parsing: false, scales: { x: S.axis("tokens/s"), y: S.axis("$ per million tokens") }, plugins: { legend: S.legendOptions(true),
      tooltip: { callbacks: { label: (item) => S.short(S.sweepLabel(item.raw.row, []), 60) + ": " + S.digits(item.raw.x) + " tokens/s, $ " + S.digits(item.raw.y) } } } },
  }, 320, null);
};

S.sweepTable = (id, rows, keys) => S.table(id, rows.map((row) => Object.assign({}, row, Object.fromEntries(keys.map((k) => ["asked_" + k, S.asText(S.valueAt(row.request || {}, k))])))), [
  { key: "point", title: "point" }, { key: "gpus", title: "GPUs", word: true }, ...keys.map((k) => ({ key: "asked_" + k, title: S.words(k), word: true })),
  { key: "verdict", title: "verdict", word: true, cell: (row) => S.verdict(row.verdict) }, { key: "plan", title: "plan", word: true },
  { key: "step_time_s", title: "step", show: S.seconds }, { key: "tokens_per_s", title: "tokens/s", show: (v) => S.digits(v) }, { key: "mfu", title: "MFU", show: S.percent },
  { key: "peak_memory_gib", title: "GiB per GPU", show: S.gib }, { key: "margin_gib", title: "margin", show: S.gib },
  { key: "usd_per_million_tokens", title: "$ per million tokens", show: (v) => S.digits(v) }], { filter: rows.length > 8 });

S.views.push({ id: "sweep", title: "Ranking", make: (answer) => {
  if (!Array.isArray(answer.ranking)) return null;
  const rows = new Map(S.list(answer.rows).map((row) => [row.point, row])), study = answer.study || {};
  const keys = S.list(study.varies).filter((k) => !["model", "method", "sequence", "plans", "gpus"].includes(k));
  const parts = [S.el("p", {}, S.name(study.name || "A sweep"), ": " + answer.finished + " of " + study.points + " points; ",
    S.entries(answer.verdicts).map(([verdict, n]) => n + " " + S.words(verdict)).join(", "), ".")];
  answer.ranking.forEach((group, i) => {
    const ranked = S.list(group.ranked).map((p) => rows.get(p)), rest = [...S.list(group.unmeasured), ...S.list(group.do_not_fit)].map((p) => rows.get(p));
    parts.push(S.el("h3", {}, S.name(group.model), ", " + group.method + ", " + S.digits(group.sequence) + " tokens per sequence"));
    if (ranked.length) parts.push(S.sweepBars("sweep-bars-" + i, answer, ranked, keys), S.sweepScatter("sweep-cost-" + i, ranked));
    parts.push(S.sweepTable("sweep-table-" + i, [...ranked, ...rest], keys));
  });
  const refused = S.list(answer.rows).filter((row) => row.problem);
  if (refused.length) parts.push(S.el("h3", {}, "No answer"), S.table("sweep-refused", refused,
    [{ key: "point", title: "point" }, { key: "model", title: "model", word: true }, { key: "gpus", title: "GPUs", word: true }, { key: "problem", title: "why", word: true }], { filter: refused.length > 8 }));
  return parts;
} });
