"use strict";
// The page's parts hang on S. Text from the answer reaches the page through S.el alone, which makes
// text nodes of it: nothing is ever parsed as HTML.
const S = { views: [], charts: new Map(), timelines: [], pending: [], opened: null };

S.el = (tag, attributes, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
};

// A name that somebody else chose: of any length, in any script. A long one scrolls, by keyboard too.
S.name = (text, parts = String(text)) => {
  const letters = String(text).length, long = letters > 300;
  return S.el("bdi", { class: long ? "name long" : letters <= 24 ? "name short" : "name", tabindex: long ? 0 : null }, parts);
};
// A plan's text, that may be broken between its parts and is copied without the breaks; a long part
// (layers=1/62x2/...) also at its slashes.
S.plan = (text) => {
  const whole = String(text);
  if (whole.length > 300) return S.name(whole);
  const parts = whole.split(/(?<=,)/).flatMap((part) => (part.length > 24 ? part.split(/(?<=\/)/) : [part]));
  return S.el("bdi", { class: "plan" }, parts.flatMap((part, i) => (i ? [S.el("wbr"), part] : [part])));
};
// Names in charts, which know no line breaks.
S.short = (text, most = 36) => {
  const letters = Array.from(String(text).replace(/[\u0000-\u001f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, " "));
  return letters.length <= most ? letters.join("") : letters.slice(0, most - 1).join("") + "\u2026";
};

S.isNumber = (v) => typeof v === "number" && Number.isFinite(v);
S.digits = (v, n = 3) => {
  if (!S.isNumber(v)) return "\u2013";
  const size = Math.abs(v);
  if (size >= 1000) return Math.round(v).toLocaleString("en-US");
  if (size === 0) return "0";
  return String(Number(v.toPrecision(n)));
};
// As the terminal has times: 26.0, 7.54, 519.
S.significant = (v) => (Math.abs(v) >= 999.5 ? S.digits(v) : v.toPrecision(3));
S.gib = (v) => (S.isNumber(v) ? (Math.abs(v) < 1000 ? v.toFixed(1) : S.digits(v)) + " GiB" : "\u2013");
S.dollars = (v) => "$" + v.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
S.counted = (n, thing) => S.digits(n) + " " + thing + (n === 1 ? "" : "s");
S.percent = (v) => (S.isNumber(v) ? (100 * v).toFixed(1) + " %" : "\u2013");
S.seconds = (v) => {
  if (!S.isNumber(v)) return "\u2013";
  const size = Math.abs(v);
  if (size === 0) return "0 s";
  if (size < 1e-3) return S.significant(v * 1e6) + "\u00a0us";
  if (size < 1) return S.significant(v * 1e3) + "\u00a0ms";
  if (size < 120) return S.significant(v) + "\u00a0s";
  if (size < 7200) return S.significant(v / 60) + "\u00a0min";
  return size < 172800 ? S.significant(v / 3600) + "\u00a0h" : S.significant(v / 86400) + "\u00a0days";
};
// Keys end in their unit, which stands with the figure.
S.words = (key) => String(key).split(".").map((part) =>
  part.replace(/(?<!_per)_(gib|s)$/, "").replace(/^usd_per_/, "$ per ").replace(/_usd$|^usd$/, " $").replaceAll("_", " ").trim()).join(", ");
S.units = [
  [/(?<!_per)_s$/, S.seconds], [/_gib$/, S.gib], [/(^|_)usd(_|$)/, (v) => "$" + S.digits(v, 4)], [/_kwh$/, (v) => S.digits(v) + " kWh"],
  [/(^|_)(fraction|mfu|goodput|share)$/, S.percent], [/_gb_per_s$/, (v) => S.digits(v) + " GB/s"],
];
S.unitOf = (key) => S.units.find(([end]) => end.test(key));
S.measure = (key, value) => {
  const unit = S.isNumber(value) ? S.unitOf(key) : null;
  return unit ? unit[1](value) : S.asText(value);
};
S.verdicts = { fits: ["fits", "good"], tight: ["tight", "warn"], does_not_fit: ["does not fit", "bad"] };
S.verdict = (v) => {
  const known = Object.hasOwn(S.verdicts, v) ? S.verdicts[v] : [S.words(v === undefined ? "cannot run" : v), "bad"];
  return S.el("b", { class: known[1] }, known[0]);
};

// Colours by name, the same on every chart: memory categories and kinds of work have their own.
const fixed = [
  "weights", "gradients", "optimizer_states", "master_weights", "activations", "logits", "adapters",
  "quantization", "gathered_parameters", "communication", "recompute", "temporaries", "workspace",
  "context", "nccl", "framework", "cache",
  "forward", "backward", "backward_weight", "optimizer", "tensor_comm", "context_comm", "expert_comm",
  "pipeline_send", "gather_parameters", "reduce_gradients", "offload_copy", "host_optimizer",
  "loader", "host", "other", "bubble", "offload",
];
const palette = [
  "#3d7fd1", "#d9792b", "#8a5fc7", "#b5477b", "#2f9e62", "#c9a413", "#19a0ab", "#6f8f23", "#5a9be8",
  "#e39a5b", "#8fc4a2", "#a9b7c4", "#9a7b57", "#7d8894", "#c86a66", "#a88fd6", "#b9c0c7",
];
const work = {
  forward: "#3d7fd1", backward: "#2f9e62", backward_weight: "#8fc4a2", recompute: "#8a5fc7",
  optimizer: "#c9a413", tensor_comm: "#d9792b", context_comm: "#e39a5b", expert_comm: "#b5477b",
  pipeline_send: "#c86a66", gather_parameters: "#19a0ab", reduce_gradients: "#d14d8b",
  offload_copy: "#9a7b57", host_optimizer: "#6f8f23", loader: "#a88fd6", host: "#7d8894",
  other: "#a9b7c4", bubble: "#c4cad1", offload: "#9a7b57",
};
S.colour = (name) => {
  if (Object.hasOwn(work, name)) return work[name];
  const at = fixed.indexOf(name);
  if (at >= 0) return palette[at % palette.length];
  let sum = 0;
  for (const c of String(name)) sum = (sum * 31 + c.codePointAt(0)) % 9973;
  return palette[sum % palette.length];
};
S.css = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();

// Work that needs the page to be laid out: done once everything hangs in the document.
S.later = (job) => S.pending.push(job);
S.settle = () => {
  const jobs = S.pending;
  S.pending = [];
  for (const job of jobs) job();
};

S.section = (id, title, ...children) =>
  S.el("section", { id, "aria-labelledby": id + "-title" }, S.el("h2", { id: id + "-title" }, title), children);
S.legend = (names) =>
  S.el("ul", { class: "legend" }, names.map((n) =>
    S.el("li", {}, S.el("i", { style: "background:" + S.colour(n) }), S.words(n))));
S.list = (value) => (Array.isArray(value) ? value : []);
S.entries = (value) => (value && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : []);

// The plans that an answer is about, whatever it calls them; of a simulation the one. Those of a
// front come after the best ones, where they are not among them.
S.plansOf = (answer) => {
  if (Array.isArray(answer.plans)) {
    const name = (p) => p.cluster + " " + p.plan, best = new Set(answer.plans.map(name));
    return answer.plans.concat(S.list(answer.pareto).filter((p) => !best.has(name(p))));
  }
  if (Array.isArray(answer.answers)) return answer.answers;
  return Array.isArray(answer.stages) ? [answer] : [];
};
S.labelOf = (plan) => (plan.method && plan.gpu ? plan.method + " on " + plan.gpu : plan.plan || "plan");
// The plan that an answer speaks of first: of several on the same GPUs, the first of the list that fits.
S.bestOf = (answer) => {
  const plans = S.plansOf(answer), fitting = plans.filter((p) => p.verdict && p.verdict !== "does_not_fit");
  if (answer.objective && fitting.length && !Array.isArray(answer.scaling)) return fitting[0];
  if (Array.isArray(answer.answers)) return fitting[0];
  return fitting.slice().sort((a, b) => S.compare(S.stepOf(a), S.stepOf(b)))[0];
};
S.stepOf = (plan) => (plan.step_time_s && S.isNumber(plan.step_time_s.expected) ? plan.step_time_s.expected : null);
S.deviceOf = (plan) => {
  if (plan.peak_memory_gib && S.isNumber(plan.peak_memory_gib.device)) return plan.peak_memory_gib.device;
  const worst = S.list(plan.stages)[plan.worst_stage || 0];
  return worst ? worst.peak_memory_gib.device : null;
};
