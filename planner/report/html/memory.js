// Memory: what each GPU holds at its peak, against what it has, and over the step.
S.memoryBars = (id, title, rows) =>
  S.stackedBars(id, title, rows, { unit: "GiB", format: S.gib, markName: "capacity" });

S.stageBars = (id, stages) => {
  const shown = stages.length > 64 ? stages.filter((s, i) => i % Math.ceil(stages.length / 64) === 0) : stages;
  return S.memoryBars(id, "Memory of one GPU of each pipeline stage at its peak",
    shown.map((s) => ({ label: "stage " + s.stage + ", " + s.gpu, parts: s.breakdown_gib, mark: s.capacity_gib })));
};

// Where the most is allocated: {at, gib} of a stage's samples.
S.peakOf = (samples) => {
  let best = { at: 0, gib: -1 };
  S.list(samples.allocated_gib).forEach((gib, i) => {
    if (gib > best.gib) best = { at: samples.at_s[i], gib };
  });
  return best;
};

// The work that the GPU of a stage does at an instant, from the timeline; "" where it idles.
S.workAt = (timeline, stage, seconds) => {
  if (!timeline) return "";
  const row = timeline.rows.find((r) => r.stage === stage && r.name === "compute");
  const at = row ? row.find(seconds * 1e9) : -1;
  return at < 0 ? "" : row.title(at);
};

S.memoryOverTime = (id, samples, timeline, stages) => {
  const peaks = samples.map(S.peakOf);
  let worst = 0;
  peaks.forEach((p, i) => { if (p.gib > peaks[worst].gib) worst = i; });
  const hue = (i) => "hsl(" + Math.round((360 * i) / Math.max(1, samples.length)) + " 60% 50%)";
  const line = (s, i, key, dash) => ({
    label: "stage " + s.stage + (dash ? " reserved" : ""), borderColor: hue(i), backgroundColor: hue(i),
    data: s.at_s.map((x, k) => ({ x, y: s[key][k] })), stepped: "before", borderWidth: dash ? 1 : 1.6,
    pointRadius: 0, borderDash: dash ? [4, 3] : [],
  });
  const datasets = samples.map((s, i) => line(s, i, "allocated_gib", false));
  if (samples.length === 1) datasets.push(line(samples[0], 0, "reserved_gib", true));
  datasets.push({
    label: "peak", type: "scatter", data: [{ x: peaks[worst].at, y: peaks[worst].gib }],
    pointRadius: 6, pointStyle: "triangle", borderColor: S.css("--mark"), backgroundColor: S.css("--mark"),
  });
  const config = {
    type: "line", data: { datasets },
    options: {
      parsing: false, normalized: true,
      interaction: { mode: "nearest", axis: "x", intersect: false },
      scales: { x: S.axis("seconds into the step", { type: "linear", min: 0 }), y: S.axis("GiB allocated", { beginAtZero: true }) },
      plugins: { legend: S.legendOptions(samples.length <= 16), tooltip: { callbacks: {
        label: (item) => item.dataset.label + ": " + S.gib(item.parsed.y) + " at " + S.seconds(item.parsed.x) } } },
    },
  };
  const own = stages.find((s) => s.stage === samples[worst].stage) || stages[0];
  const doing = S.workAt(timeline, samples[worst].stage, peaks[worst].at);
  const words = "A steady step holds most in stage " + samples[worst].stage + ": " + S.gib(peaks[worst].gib) +
    " allocated " + S.seconds(peaks[worst].at) + " into the step" + (doing ? ", in " + doing : "") +
    "; the GPU has " + S.gib(own.capacity_gib) + ".";
  const numbers = S.table(id + "-figures", samples.map((s, i) => ({ stage: s.stage, most: peaks[i].gib, at: peaks[i].at })),
    [{ key: "stage", title: "stage" }, { key: "most", title: "most allocated", show: S.gib }, { key: "at", title: "at", show: S.seconds }]);
  return S.el("div", {}, S.chart(id, "What tensors hold over the step", config, 300, numbers),
    S.el("p", { class: "peak", "data-peak-gib": peaks[worst].gib, "data-peak-s": peaks[worst].at }, words));
};

S.phases = (id, stages, worst) => {
  const stage = stages[worst] || stages[0];
  if (!stage || !stage.phases_gib) return null;
  const rows = S.entries(stage.phases_gib).map(([phase, m]) => Object.assign({ phase: S.words(phase) }, m));
  return S.el("div", {}, S.el("h3", {}, "Stage " + stage.stage + " through a run"),
    S.table(id, rows, [{ key: "phase", title: "phase", word: true },
      ...["allocated", "reserved", "device"].map((k) => ({ key: k, title: k, show: S.gib }))]));
};
