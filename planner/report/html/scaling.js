// How the best plan scales: tokens per second and the rent of a token over the number of GPUs.
S.scalingChart = (id, title, points, lines, unit, logarithmic) => S.chart(id, title, {
  type: "line",
  data: { datasets: lines.map(({ label, value, colour, dash }) => ({
    label, data: points.map((p) => ({ x: p.gpus, y: value(p) })), borderColor: colour, backgroundColor: colour, borderDash: dash || [], pointRadius: dash ? 0 : 4, pointStyle: dash ? "line" : "circle" })) },
  options: {
    parsing: false,
    scales: {
      x: S.axis("GPUs", { type: "logarithmic", min: points[0].gpus, max: points[points.length - 1].gpus,
        ticks: { callback: (v) => S.digits(v) },  // else Chart.js names 1, 2, 3, 5, 10, ... alone
        afterBuildTicks: (axis) => { axis.ticks = points.map((p) => ({ value: p.gpus })); } }),
      y: S.axis(unit, logarithmic ? { type: "logarithmic" } : { beginAtZero: true }),
    },
    plugins: { legend: S.legendOptions(lines.length > 1, { usePointStyle: true }) },
  },
}, 300, null);

S.views.push({ id: "scaling", title: "Scaling", make: (answer) => {
  const all = S.list(answer.scaling), points = all.filter((p) => p.best && S.isNumber(p.best.tokens_per_s));
  if (points.length === 0) return null;
  const first = points[0], priced = points.filter((p) => S.isNumber(p.best.usd_per_million_tokens)), misfits = all.filter((p) => !p.best);
  const rows = points.map((p) => ({ gpus: p.gpus, plan: p.best.plan, tokens: p.best.tokens_per_s, step: S.stepOf(p.best), faster: p.faster_than_half, usd: p.best.usd_per_million_tokens }));
  const stops = answer.doubling_stops_paying_at_gpus;
  return [S.scalingChart("scaling-chart", "Tokens per second of the best plan", points, [
    { label: "best plan", value: (p) => p.best.tokens_per_s, colour: S.colour("forward") },
    { label: "in proportion", value: (p) => (first.best.tokens_per_s * p.gpus) / first.gpus, colour: S.css("--soft"), dash: [5, 4] }], "tokens/s", true),
  priced.length ? S.scalingChart("scaling-cost", "Rent for a million tokens", priced, [
    { label: "$ per million tokens", value: (p) => p.best.usd_per_million_tokens, colour: S.colour("optimizer") }], "$", false) : null,
  S.el("p", { class: "stops" }, stops ? "Doubling stops paying at " + S.digits(stops) + " GPUs: the next doubling makes a step less than 1.5 times as fast."
    : "Every doubling shown makes a step at least 1.5 times as fast."),
  misfits.length ? S.el("p", {}, "No plan fits on " + misfits.map((p) => S.digits(p.gpus)).join(", ") + " GPUs.") : null,
  S.table("scaling-table", rows, [{ key: "gpus", title: "GPUs" }, { key: "plan", title: "plan", word: true, cell: (r) => S.plan(r.plan) }, { key: "step", title: "step", show: S.seconds },
    { key: "tokens", title: "tokens/s", show: (v) => S.digits(v) }, { key: "faster", title: "faster than half", show: (v) => S.digits(v) + " x" }, { key: "usd", title: "$ per million tokens", show: (v) => "$" + S.digits(v) }])];
} });
