// The page: verdict, views, contents, colours.
S.tiles = (list) => S.el("ul", { class: "tiles" }, list.filter((t) => t[1] !== null && t[1] !== undefined).map(([what, value, key]) =>
  S.el("li", { "data-figure": key || what }, S.el("b", {}, value), S.el("span", {}, what))));

S.interval = (plan) => {
  const t = plan.step_time_s;
  return t ? S.seconds(t.expected) + " (80 % of such runs: " + S.seconds(t.low) + " to " + S.seconds(t.high) + ")" : "";
};
S.planWords = (plan) => {
  const device = S.deviceOf(plan), stage = S.list(plan.stages)[plan.worst_stage || 0];
  const capacity = S.isNumber(plan.capacity_gib) ? plan.capacity_gib : stage ? stage.capacity_gib : null;
  if (device === null) return "";
  const margin = capacity === null ? "" : " of " + S.gib(capacity) + (device > capacity ? ", " + S.gib(device - capacity) + " too much" : "");
  return S.gib(device) + margin + " per GPU; a step takes " + S.interval(plan);
};

S.verdictLines = (answer) => {
  const line = (...parts) => S.el("p", { class: "verdict" }, parts);
  if (Array.isArray(answer.stages)) return [line(S.verdict(answer.verdict), ": ", S.planWords(answer), ".")];
  if (answer.score) {
    const s = answer.score;
    return [line("Of ", S.digits(s.records), " published records ", S.digits(s.answered), " could be asked. Half of the forecasts are within ",
      S.percent(s.time.median), " of the measured step time and ", S.percent(s.memory.median), " of the measured memory; ",
      s.outcome.false_fits, " of ", s.outcome.ran_out, " runs that ran out of memory were forecast to fit.")];
  }
  if (Array.isArray(answer.answers)) {
    const methods = [...new Set(answer.answers.map((a) => a.method))];
    return methods.map((method) => {
      const list = answer.answers.filter((a) => a.method === method), fitting = list.filter((a) => a.verdict !== "does_not_fit");
      const best = (fitting.length ? fitting : list).slice().sort((a, b) => S.compare(S.stepOf(a), S.stepOf(b)))[0];
      return line(S.el("b", {}, method), " ", S.verdict(best.verdict), list.length > 1 ? " on " + (fitting.length || "any") + " of " + list.length + " cards; " : " ", "on ", S.name(best.gpu), ": ", S.planWords(best), ".");
    });
  }
  if (Array.isArray(answer.plans)) {
    const best = S.bestOf(answer), which = answer.objective && answer.objective !== "time" ? "The best by " + answer.objective : "The fastest";
    return [best ? line(which + " that fits is ", S.plan(best.plan), best.cluster && answer.scaling ? [" on ", S.name(best.cluster)] : null, ": ", S.planWords(best), ".") : line(S.el("b", { class: "bad" }, "No plan fits"), ".")];
  }
  if (Array.isArray(answer.offers)) {
    const first = answer.offers[0];
    return [first ? line("The cheapest way to train on ", S.digits(answer.sequences), " sequences: ", S.el("b", {}, S.name(first.gpus)), ", ", S.name(S.howOf(first)), ": " + S.dollars(first.usd_total) + " and " + S.seconds(first.time_s) + ".")
      : line(S.el("b", { class: "bad" }, "Nothing holds it"), " within the budget.")];
  }
  if (Array.isArray(answer.models)) {
    const fitting = answer.models.filter((m) => m.verdict !== "does_not_fit");
    return [line(S.el("b", {}, fitting.length + " of " + answer.models.length + " models"), " can be trained on ", S.name(answer.gpus), " in one way or another.")];
  }
  return answer.verdict ? [line(S.verdict(answer.verdict))] : [];
};

S.figures = (answer) => {
  if (!S.isNumber(answer.tokens_per_s)) return null;
  return S.tiles([["step", S.seconds(S.stepOf(answer)), "step_time_s"], ["tokens per second", S.digits(answer.tokens_per_s), "tokens_per_s"],
    ["MFU", S.isNumber(answer.mfu) ? S.percent(answer.mfu) : null, "mfu"], ["bubble", S.isNumber(answer.bubble_fraction) ? S.percent(answer.bubble_fraction) : null, "bubble_fraction"],
    ["weakest input", answer.trust || null, "trust"]]);
};

S.heading = (answer) => {
  const r = answer.request || {}, parts = [];
  if (answer.model || r.model) parts.push(S.name(answer.model || r.model));
  if (r.gpus) parts.push(" on ", S.name(r.gpus));
  return S.el("h1", {}, parts.length ? parts : "shardwise " + (answer.command || ""));
};
S.subtitle = (answer) => {
  const r = answer.request || {}, words = [];
  if (answer.command && (answer.model || r.model || r.gpus)) words.push("shardwise " + answer.command);
  if (r.sequence) words.push(S.digits(r.sequence) + " tokens per sequence");
  if (r.batch) words.push(S.digits(r.batch) + (r.preference ? " samples for " + r.preference : " sequences") + " per step");
  return S.el("p", { class: "soft" }, words.join(", "), answer.plan ? [", plan ", S.plan(answer.plan)] : null);
};

S.render = () => {
  const { answer, details } = S.document;
  S.dropCharts();
  S.timelines = [];
  S.pending = [];
  const sections = [], links = [];
  for (const view of S.views) {
    const content = view.make(answer, S.list(details));
    if (!content) continue;
    sections.push(S.section(view.id, view.title, content));
    links.push(S.el("a", { href: "#" + view.id }, view.title));
  }
  document.getElementById("main").replaceChildren(S.heading(answer), S.subtitle(answer), ...S.verdictLines(answer), S.figures(answer) || "", ...sections);
  document.getElementById("contents").replaceChildren(...links);
  S.settle();
};

S.open = (index) => {
  S.opened = index;
  const y = window.scrollY;
  S.render();
  const section = document.getElementById("plan");
  if (section) section.scrollIntoView();
  else window.scrollTo(0, y);
};

S.themes = ["", "light", "dark"];
S.setTheme = (theme) => {
  if (theme) document.documentElement.setAttribute("data-theme", theme);
  else document.documentElement.removeAttribute("data-theme");
  document.getElementById("theme").textContent = "Colours: " + (theme || "as the system");
  S.theme = theme;
  S.render();
};

S.save = () => {
  const link = S.el("a", { href: URL.createObjectURL(new Blob([JSON.stringify(S.document.answer, null, 2)], { type: "application/json" })), download: "shardwise.json" });
  link.click();
  URL.revokeObjectURL(link.href);
};

S.listenToPage = () => {
  document.getElementById("theme").addEventListener("click", () => S.setTheme(S.themes[(S.themes.indexOf(S.theme || "") + 1) % 3]));
  document.getElementById("save").addEventListener("click", S.save);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (!S.theme) S.render(); });
  let before = "";
  window.addEventListener("beforeprint", () => { before = S.theme || ""; S.setTheme("light"); for (const c of S.charts.values()) c.resize(); });
  window.addEventListener("afterprint", () => S.setTheme(before));
};

S.start = (document_) => {
  S.document = document_;
  const details = S.list(document_.details);
  const plans = S.plansOf(document_.answer), best = plans.indexOf(S.bestOf(document_.answer));
  S.opened = plans.length === 0 ? null : best >= 0 ? best : details.length ? details[0].of : 0;
  S.listenToPage();
  S.render();
};
