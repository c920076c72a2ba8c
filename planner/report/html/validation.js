// validate: what was measured against what was forecast.
S.scatter = (id, title, runs, key, unit, format) => {
  const told = runs.filter((r) => r[key] && S.isNumber(r[key].measured) && S.isNumber(r[key].predicted) && r[key].measured > 0);
  if (told.length === 0) return null;
  const sources = [...new Set(told.map((r) => r.source))].sort();
  const hue = (name) => "hsl(" + Math.round((360 * sources.indexOf(name)) / sources.length) + " 60% 50%)";
  const point = (r) => ({ x: r[key].measured, y: r[key].predicted, run: r });
  const values = told.flatMap((r) => [r[key].measured, r[key].predicted]).filter((v) => v > 0);
  const ends = [Math.min(...values), Math.max(...values)];
  const line = (factor, label, dash) => ({ label, type: "line", data: ends.map((x) => ({ x, y: x * factor })), borderColor: S.css("--soft"), borderDash: dash, borderWidth: 1, pointRadius: 0 });
  const set = (name) => ({ label: S.short(name), source: name, data: told.filter((r) => r.source === name).map(point), pointRadius: 3, backgroundColor: hue(name), borderColor: hue(name) });
  const lines = [line(1, "equal", []), line(1.25, "25 % more", [4, 4]), line(1 / 1.25, "25 % less", [4, 4])];
  const config = {
    type: "scatter", data: { datasets: [...sources.map(set), ...lines] },
    options: {
      parsing: false,
      scales: { x: S.axis("measured " + unit, { type: "logarithmic" }), y: S.axis("forecast " + unit, { type: "logarithmic" }) },
      plugins: { legend: { display: false }, tooltip: { callbacks: { label: (item) => (item.raw.run ? S.short(item.raw.run.id, 60) + ": measured " + format(item.raw.x) + ", forecast " + format(item.raw.y) : item.dataset.label) } } },
    },
  };
  const choice = S.el("select", { "aria-label": "Source of the runs: " + title, onchange: () => {
    const chart = S.charts.get(id), wanted = choice.selectedIndex - 1;
    chart.data.datasets.forEach((d, i) => { d.hidden = wanted >= 0 && i < sources.length && i !== wanted; });
    chart.update();
  } }, S.el("option", {}, (sources.length > 1 ? "all " : "") + S.counted(sources.length, "source") + ", " + S.counted(told.length, "run")), sources.map((s) => S.el("option", {}, S.short(s, 60))));
  const figure = S.chart(id, title, config, 420, null);
  figure.insertBefore(S.el("div", { class: "controls" }, choice), figure.children[1]);
  return figure;
};

S.errorTable = (answer) => {
  const told = (e, key) => (e.runs > 0 ? e[key] : null);
  const rows = S.list(answer.score.rows).map((r) => ({
    name: r.name, tn: r.time.runs, tb: told(r.time, "bias"), tm: told(r.time, "median"), tp: told(r.time, "p90"),
    mn: r.memory.runs, mb: told(r.memory, "bias"), mm: told(r.memory, "median"), mp: told(r.memory, "p90"),
  }));
  const some = (n) => (v) => S.percent(v);
  return S.table("errors", rows, [
    { key: "name", title: answer.by, word: true }, { key: "tn", title: "time runs" }, { key: "tb", title: "bias", show: some() },
    { key: "tm", title: "median", show: some() }, { key: "tp", title: "p90", show: some() }, { key: "mn", title: "memory runs" },
    { key: "mb", title: "bias", show: some() }, { key: "mm", title: "median", show: some() }, { key: "mp", title: "p90", show: some() }], { filter: true });
};

S.runTable = (runs) => {
  const error = (f) => (f && S.isNumber(f.measured) && S.isNumber(f.predicted) ? f.predicted / f.measured - 1 : null);
  const rows = runs.map((r) => ({
    id: r.id, source: r.source, gpu: r.gpu, framework: r.framework, method: r.method,
    step: r.step_time_s && r.step_time_s.measured, forecast: r.step_time_s && r.step_time_s.predicted, error: error(r.step_time_s),
    memory: r.peak_mem_gib && r.peak_mem_gib.measured, memory_forecast: r.peak_mem_gib && r.peak_mem_gib.predicted, memory_error: error(r.peak_mem_gib),
    skipped: r.skipped,
  }));
  const word = (key) => ({ key, title: S.words(key), word: true });
  return S.table("runs", rows, [word("id"), word("source"), word("gpu"), word("framework"), word("method"),
    { key: "step", title: "step", show: S.seconds }, { key: "forecast", title: "forecast", show: S.seconds }, { key: "error", title: "error", show: S.percent },
    { key: "memory", title: "memory", show: S.gib }, { key: "memory_forecast", title: "forecast", show: S.gib }, { key: "memory_error", title: "error", show: S.percent },
    word("skipped")], { filter: true, first: 50 });
};

S.views.push({ id: "validation", title: "Measured against forecast", make: (answer) => {
  if (!answer.score || !Array.isArray(answer.runs)) return null;
  const skipped = S.entries(answer.score.skipped).map(([reason, n]) => ({ reason, records: n }));
  return [S.el("div", { class: "columns" },
    S.scatter("scatter-time", "Step time", answer.runs, "step_time_s", "in seconds", S.seconds),
    S.scatter("scatter-memory", "Peak memory", answer.runs, "peak_mem_gib", "in GiB", S.gib)),
  S.el("h3", {}, "Error, row by row"), S.errorTable(answer), S.el("h3", {}, "Every run"), S.runTable(answer.runs),
  skipped.length ? [S.el("h3", {}, "Records that could not be asked"), S.table("skipped", skipped, [{ key: "reason", title: "why", word: true }, { key: "records", title: "records" }])] : null];
} });

// calibrate import: what was measured, size by size, and the curve fitted to it. One of them at a time.
S.fitSets = (fit) => {
  const at = (value) => S.list(fit.measured).map((m) => ({ x: m.bytes, y: value(m) }));
  const line = (label, value, dash) => ({ label, type: "line", data: at(value), borderColor: S.colour("forward"), borderDash: dash, borderWidth: dash.length ? 1 : 2, pointRadius: 0 });
  return [{ label: "measured", data: at((m) => m.time_s), backgroundColor: S.colour("backward"), borderColor: S.colour("backward"), pointRadius: 4 },
    line("fitted", (m) => m.fitted_s, []), line("10 % lie below", (m) => m.fitted_s * fit.low, [4, 4]), line("10 % lie above", (m) => m.fitted_s * fit.high, [4, 4])];
};
S.fitPoints = (fit) => S.table("fit-points", S.list(fit.measured).map((m) => ({ bytes: m.bytes, measured: m.time_s, fitted: m.fitted_s, error: m.fitted_s / m.time_s - 1 })),
  [{ key: "bytes", title: "bytes", show: (v) => S.digits(v) }, { key: "measured", title: "measured", show: S.seconds }, { key: "fitted", title: "fitted", show: S.seconds }, { key: "error", title: "error", show: S.percent }]);

S.fitFigure = (fits) => {
  const config = { type: "scatter", data: { datasets: S.fitSets(fits[0]) }, options: { parsing: false,
    scales: { x: S.axis("bytes", { type: "logarithmic" }), y: S.axis("seconds", { type: "logarithmic" }) },
    plugins: { legend: S.legendOptions(true), tooltip: { callbacks: { label: (item) => item.dataset.label + ": " + S.digits(item.raw.x) + " bytes, " + S.seconds(item.raw.y) } } } } };
  const points = S.el("div", {}, S.fitPoints(fits[0]));
  const choice = S.el("select", { "aria-label": "Curve", onchange: () => {
    const chart = S.charts.get("fit"), fit = fits[choice.selectedIndex];
    chart.data.datasets = S.fitSets(fit);
    chart.update();
    points.replaceChildren(S.fitPoints(fit));
  } }, fits.map((f) => S.el("option", {}, S.short(f.name, 80))));
  const figure = S.chart("fit", "Time over size", config, 420, null);
  figure.insertBefore(S.el("div", { class: "controls" }, choice), figure.children[1]);
  return [figure, points];
};

S.views.push({ id: "calibration", title: "Measured against fitted", make: (answer) => {
  if (!Array.isArray(answer.fits) || !Array.isArray(answer.files)) return null;
  const files = answer.files.map((f) => ({ file: f.file, format: f.format, measurements: f.measurements.length, unread: f.unread.length }));
  const fits = answer.fits.filter((f) => S.list(f.measured).length > 0), word = (key) => ({ key, title: S.words(key), word: true });
  const constants = answer.profile ? S.entries(answer.profile.constants).map(([constant, c]) => Object.assign({ constant }, c)) : [];
  const number = (v) => S.digits(v);
  return [fits.length ? S.fitFigure(fits) : null,
    constants.length ? [S.el("h3", {}, "Constants of the profile"), S.table("constants", constants, [word("constant"), { key: "value", title: "value", show: number },
      { key: "low", title: "80 % low", show: number }, { key: "high", title: "80 % high", show: number }, { key: "points", title: "points" }])] : null,
    S.el("h3", {}, "Every curve"), S.table("fits", fits, [word("name"), { key: "points", title: "points" }, { key: "discarded", title: "discarded" },
      { key: "low", title: "80 % low", show: number }, { key: "high", title: "80 % high", show: number },
      { key: "leave_one_size_out_error", title: "error at a size left out", show: S.percent }], { filter: true }),
    S.el("h3", {}, "What was read"), S.table("files", files, [word("file"), word("format"), { key: "measurements", title: "measurements" }, { key: "unread", title: "lines not understood" }])];
} });
