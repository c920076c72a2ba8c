// Why: what bounds the step, every figure with its derivation, and what other plans lack.
S.shownUnit = (value, unit) => {
  if (unit === "s") return S.seconds(value);
  if (unit === "GiB") return S.gib(value);
  return S.digits(value, 4) + (unit ? " " + unit : "");
};
S.boundWords = {
  compute: "arithmetic: matrix products and attention", hbm: "the memory bandwidth of the GPU",
  link: "links: communication that nothing hides", bubble: "the pipeline's bubble", host: "the host",
};

S.derivation = (figure) => S.el("details", { class: "derivation", "data-key": figure.key },
  S.el("summary", {}, S.el("b", {}, S.words(figure.key)), " ", S.shownUnit(figure.value, figure.unit), figure.what ? ": " + figure.what : ""),
  figure.formula ? S.el("p", { class: "formula" }, "= " + figure.formula) : null,
  S.el("ul", {}, S.list(figure.inputs).map((i) => S.el("li", {}, S.words(i.name), i.value !== 0 ? " " + S.shownUnit(i.value, i.unit) : "",
    i.trust ? [" ", S.el("span", { class: "badge" }, i.trust)] : null, i.source ? [" ", S.el("span", { class: "soft" }, S.name(i.source))] : null))));

S.explanation = (id, explain) => S.el("div", { class: "explanation" },
  S.el("p", { class: "bound", "data-bound": explain.bound.by }, "A step is bound by " + (S.boundWords[explain.bound.by] || explain.bound.by) +
    ": " + S.percent(explain.bound.share) + " of it."),
  S.stackedBars(id + "-bound", "What the step waits for", [{ label: "step", parts: explain.bound.parts_s }], { unit: "seconds", format: S.seconds }),
  explain.figures.map(S.derivation));

S.whyNot = (list) => list.map((w) => S.el("div", { class: "why-not" }, S.el("h3", {}, "Why not ", S.plan(w.plan), "?"),
  S.el("ul", {}, S.list(w.reasons).map((reason) => S.el("li", {}, S.name(reason))))));

S.views.push({ id: "why", title: "Why", make: (answer) => {
  const plans = S.plansOf(answer), opened = Array.isArray(answer.stages) ? answer : plans[S.opened];
  const explain = opened && opened.explain, not = S.list(answer.why_not).concat(opened && opened !== answer ? S.list(opened.why_not) : []);
  if (!explain && not.length === 0) return null;
  return [opened !== answer && opened ? S.el("p", {}, S.name(S.labelOf(opened))) : null, explain ? S.explanation("why", explain) : null, S.whyNot(not)];
} });
