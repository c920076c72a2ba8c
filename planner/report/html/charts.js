// Charts by Chart.js, each with its figures as a table below it. Points that it does not parse must
// rise in x: it takes the range of the axis from the first and the last.
S.chart = (id, title, config, height, numbers) => {
  if (config.options && config.options.parsing === false)
    for (const set of config.data.datasets) set.data = set.data.slice().sort((a, b) => a.x - b.x);
  const canvas = S.el("canvas", { role: "img", "aria-label": title + "; the figures stand in the table below" });
  S.later(() => {
    config.options = Object.assign({ responsive: true, maintainAspectRatio: false, animation: false }, config.options);
    const chart = new Chart(canvas, config);
    S.charts.set(id, chart);
  });
  return S.el("figure", { class: "chart", "data-chart": id },
    S.el("figcaption", {}, title),
    S.el("div", { class: "plot", style: "height:" + height + "px" }, canvas),
    numbers ? S.el("details", {}, S.el("summary", {}, "The figures"), numbers) : null);
};
S.dropCharts = () => {
  for (const chart of S.charts.values()) chart.destroy();
  S.charts.clear();
};

S.axis = (title, more = {}) => {
  const { ticks, ...rest } = more;
  return Object.assign({
    title: { display: Boolean(title), text: title, color: S.css("--soft") },
    grid: { color: S.css("--grid") },
    ticks: Object.assign({ color: S.css("--soft"), maxRotation: 0, autoSkip: true }, ticks),
  }, rest);
};
S.legendOptions = (display, labels = {}) => ({ display, position: "bottom", labels: Object.assign({ color: S.css("--text"), boxWidth: 12 }, labels) });

// About as high as a legend of these names gets, so that it takes nothing from the bars.
S.legendHeight = (names) => {
  const wide = names.reduce((sum, n) => sum + 36 + 6.5 * S.words(n).length, 0), room = Math.min(1360, window.innerWidth - 40);
  return 20 * Math.ceil(wide / Math.max(200, room));
};

// Lines across horizontal bars: how much there is. `values` by bar, null for none.
S.marks = (values, what) => ({
  id: "marks",
  afterDatasetsDraw(chart) {
    const { ctx, scales } = chart;
    const step = scales.y.height / Math.max(1, values.length);
    ctx.save();
    ctx.strokeStyle = S.css("--mark");
    ctx.lineWidth = 2;
    values.forEach((value, i) => {
      if (!S.isNumber(value)) return;
      const x = scales.x.getPixelForValue(value), y = scales.y.getPixelForValue(i);
      ctx.beginPath();
      ctx.moveTo(x, y - step * 0.45);
      ctx.lineTo(x, y + step * 0.45);
      ctx.stroke();
    });
    ctx.restore();
  },
  what,
});

// Horizontal bars in parts. rows: [{label, parts: {name: value}, mark}]; the mark is a line.
S.stackedBars = (id, title, rows, { unit, format, markName }) => {
  const names = [];
  for (const row of rows) for (const [name] of S.entries(row.parts)) if (!names.includes(name)) names.push(name);
  const value = (row, name) => (row.parts && Object.hasOwn(row.parts, name) ? row.parts[name] : 0);
  const marks = rows.map((row) => (S.isNumber(row.mark) ? row.mark : null));
  const most = Math.max(...marks.filter(S.isNumber), 0);
  const config = {
    type: "bar",
    data: {
      labels: rows.map((row) => S.short(row.label)),
      datasets: names.map((name) => ({
        label: S.words(name), data: rows.map((row) => value(row, name)),
        backgroundColor: S.colour(name), stack: "one", barPercentage: 0.8, categoryPercentage: 0.9,
      })),
    },
    options: {
      indexAxis: "y",
      scales: {
        x: S.axis(unit, { stacked: true, suggestedMax: most * 1.03 }),
        y: S.axis("", { stacked: true, ticks: { autoSkip: rows.length > 40 } }),
      },
      plugins: {
        legend: S.legendOptions(true),
        tooltip: { callbacks: {
          title: (items) => (items.length ? S.short(rows[items[0].dataIndex].label, 80) : ""),
          label: (item) => item.dataset.label + ": " + format(item.parsed.x),
        } },
      },
    },
    plugins: [S.marks(marks, markName)],
  };
  const table = S.table(id + "-figures", rows.map((row) => Object.assign({ what: row.label }, row.parts, markName ? { [markName]: row.mark } : {})),
    [{ key: "what", title: "", word: true }, ...names.map((n) => ({ key: n, title: S.words(n), show: format })),
      ...(markName ? [{ key: markName, title: markName, show: format }] : [])]);
  const figure = S.chart(id, title, config, Math.min(2400, 90 + 26 * rows.length) + S.legendHeight(names), table);
  if (markName) figure.insertBefore(S.el("p", { class: "soft" }, "The line across a bar: " + markName + "."), figure.children[1]);
  return figure;
};
