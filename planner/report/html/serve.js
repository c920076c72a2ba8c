// The page of `shardwise serve`: asks as somebody types, and draws the answers as a report does.
S.ask = {
  uploaded: null, number: 0, timer: null,
  value: (id) => document.getElementById(id).value.trim(),
  state(text) { document.getElementById("state").textContent = text; },
};

// What the form says, as a request document; null where something is still missing. Every command
// refuses what would change nothing in its answer.
S.ask.body = (command = S.ask.value("command")) => {
  const { value, uploaded } = S.ask, body = {};
  if (uploaded) body.config = uploaded;
  else if (value("model") !== "") body.model = value("model");
  if (value("gpus") !== "") body.gpus = value("gpus");
  if (value("method") !== "") body.method = [value("method")];
  for (const key of ["sequence", "samples"]) {
    const number = Number(value(key).replace(/[ ,_]/g, ""));
    if (value(key) !== "") body[key] = Number.isFinite(number) ? number : value(key);
  }
  if (command === "models") delete body.samples;
  if (value("explain") !== "" && (command === "fit" || command === "simulate")) body.explain = true;
  if (value("reach") !== "" && command === "fit") body.reach = true;
  // Which models run here has no model, and what to buy or rent no GPUs.
  const needsModel = command !== "models", needsGpus = command !== "shop";
  if (!needsModel) { delete body.model; delete body.config; }
  if (!needsGpus) delete body.gpus;
  return (needsModel && !body.model && !body.config) || (needsGpus && !body.gpus) ? null : body;
};

S.ask.post = async (path, body) => {
  const reply = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  return { ok: reply.ok, answer: await reply.json() };
};

S.ask.now = async () => {
  const body = S.ask.body(), number = ++S.ask.number;
  if (body === null) return S.ask.state(S.ask.value("command") === "shop" ? "Name a model." : S.ask.value("command") === "models" ? "Name GPUs." : "Name a model and GPUs.");
  S.ask.state("Asking \u2026");
  let reply;
  try {
    reply = await S.ask.post("/api/" + S.ask.value("command"), body);
  } catch (error) {
    return S.ask.state("The server does not answer: " + error.message);
  }
  if (number !== S.ask.number) return undefined;
  if (!reply.ok) return S.ask.state(S.list(reply.answer.problems).map((p) => p.where + ": " + p.what).join("\n"));
  S.ask.state("");
  S.document = { answer: reply.answer, details: [] };
  const plans = S.plansOf(reply.answer);
  S.opened = plans.length ? Math.max(0, plans.indexOf(S.bestOf(reply.answer))) : null;
  return S.render();
};
S.ask.soon = () => {
  clearTimeout(S.ask.timer);
  S.ask.timer = setTimeout(S.ask.now, 150);
};

// A plan that is opened is simulated in full.
S.ask.open = async (index) => {
  const { answer, details } = S.document, plan = S.plansOf(answer)[index];
  const known = details.some((d) => d.of === index), body = S.ask.body("simulate");
  if (!known && plan && plan.plan && plan.verdict && body) {
    S.ask.state("Simulating \u2026");
    const asked = Object.assign(body, { plans: [plan.plan] });
    if (plan.method) asked.method = [plan.method];
    else if (answer.method) asked.method = [answer.method];
    if (plan.gpu && /^[0-9]+x[0-9]+ *GB$/i.test(asked.gpus)) asked.gpus = asked.gpus.split("x")[0] + "x" + plan.gpu;
    const settings = plan.settings || {};
    for (const key of ["framework", "batch", "sequence"]) if (settings[key]) asked[key] = settings[key];
    const reply = await S.ask.post("/api/simulate/document", asked);
    if (S.document.answer !== answer) return;
    S.ask.state(reply.ok ? "" : S.list(reply.answer.problems).map((p) => p.what).join("\n"));
    if (reply.ok) details.push({ of: index, simulation: reply.answer.answer, timeline: reply.answer.details[0].timeline });
  }
  S.openHere(index);
};

S.ask.take = async (file) => {
  try {
    S.ask.uploaded = JSON.parse(await file.text());
    S.ask.now();
  } catch (error) {
    S.ask.uploaded = null;
    S.ask.state(S.short(file.name) + " is no JSON: " + error.message);
  }
};

S.serve = () => {
  S.document = { answer: {}, details: [] };
  S.openHere = S.open;
  S.open = S.ask.open;
  S.listenToPage();
  const form = document.getElementById("ask");
  form.addEventListener("submit", (e) => { e.preventDefault(); S.ask.now(); });
  form.addEventListener("input", (e) => {
    if (e.target.id === "model") { S.ask.uploaded = null; document.getElementById("config").value = ""; }
    if (e.target.id !== "config") S.ask.soon();
  });
  // Not every way to choose from a list is an input as well.
  form.addEventListener("change", (e) => { if (e.target.tagName === "SELECT") S.ask.soon(); });
  document.getElementById("config").addEventListener("change", (e) => { if (e.target.files.length) S.ask.take(e.target.files[0]); });
  document.addEventListener("dragover", (e) => e.preventDefault());
  document.addEventListener("drop", (e) => { e.preventDefault(); if (e.dataTransfer.files.length) S.ask.take(e.dataTransfer.files[0]); });
  for (const [list, path] of [["models", "/api/models.json"], ["gpu-names", "/api/gpus.json"]])
    fetch(path).then((r) => r.json()).then((names) => document.getElementById(list).replaceChildren(...names.map((n) => S.el("option", { value: n }))), () => {});
  S.ask.now();
};
