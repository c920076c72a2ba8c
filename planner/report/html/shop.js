// What to buy or rent, and which models run here.
S.priceOf = (offer) => {
  if (S.isNumber(offer.usd_per_hour)) return " at " + S.dollars(offer.usd_per_hour) + " an hour";
  return S.isNumber(offer.usd_cards) ? " at " + S.dollars(offer.usd_cards) : "";
};
S.howOf = (offer) => {
  const date = offer.price_date === "unknown" ? "undated" : offer.price_date;
  return offer.kind + (offer.provider ? " " + offer.provider + " " + (offer.instance || "") : "") + S.priceOf(offer) + (date ? " (" + date + ")" : "");
};

S.views.push({ id: "offers", title: "Buy or rent", make: (answer) => {
  const offers = S.list(answer.offers), kinds = [...new Set(offers.map((o) => o.kind))];
  if (offers.length === 0) return null;
  const hue = { rent: S.colour("forward"), buy: S.colour("tensor_comm") };
  const set = (kind) => ({ label: kind, data: offers.map((o, i) => ({ x: o.time_s / 3600, y: o.usd_total, i })).filter((p) => offers[p.i].kind === kind),
    backgroundColor: hue[kind] || S.colour(kind), pointRadius: 5, pointStyle: kind === "buy" ? "rectRot" : "circle" });
  const columns = [{ key: "gpus", title: "GPUs", word: true }, { key: "how", title: "how", word: true },
    { key: "verdict", title: "verdict", word: true, cell: (r) => S.verdict(r.verdict) }, { key: "step", title: "step", show: S.seconds },
    { key: "time_s", title: "time", show: S.seconds }, { key: "usd_total", title: "total", show: S.dollars }, { key: "plan", title: "plan", word: true, cell: (r) => S.plan(r.plan || "") }];
  return [S.chart("offers-scatter", "Cost against time", { type: "scatter", data: { datasets: kinds.map(set) },
    options: { parsing: false, scales: { x: S.axis("hours", { type: "logarithmic" }), y: S.axis("$ in all", { type: "logarithmic" }) },
      plugins: { legend: S.legendOptions(true), tooltip: { callbacks: { label: (item) => S.short(offers[item.raw.i].gpus, 40) + ", " + S.howOf(offers[item.raw.i]) + ": " + S.dollars(item.raw.y) + ", " + S.seconds(item.raw.x * 3600) } } } } }, 340, null),
  S.table("offers-table", offers.map((o) => Object.assign({ how: S.howOf(o), step: S.stepOf(o) }, o)), columns, { filter: true, first: 30 }),
  S.el("p", { class: "soft" }, S.digits(answer.do_not_fit) + " machines do not hold it, " + S.digits(answer.too_dear) + " are beyond the budget.")];
} });

S.views.push({ id: "models", title: "Models on these GPUs", make: (answer) => {
  const models = S.list(answer.models);
  if (models.length === 0) return null;
  const methods = [...new Set(models.flatMap((m) => S.list(m.answers).map((a) => a.method)))];
  const rows = models.map((m) => Object.assign({ model: m.model, parameters: m.parameters, verdict: m.verdict },
    Object.fromEntries(S.list(m.answers).map((a) => [a.method, a.verdict === "does_not_fit" ? null : a.tokens_per_s]))));
  return [S.table("models-table", rows, [{ key: "model", title: "model", word: true }, { key: "parameters", title: "parameters", show: (v) => S.digits(v / 1e9) + " B" },
    { key: "verdict", title: "verdict", word: true, cell: (r) => S.verdict(r.verdict) },
    ...methods.map((m) => ({ key: m, title: m + ", tokens/s", show: (v) => (v === null ? "does not fit" : S.digits(v)) }))], { filter: true, first: 50 })];
} });
