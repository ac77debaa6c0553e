// The report's charts: drawn by Vega-Lite when they come into view, and all of them as soon as there is time.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const hidden = new Set(); // protocols that are switched off
  const live = new Map(); // figure -> what is drawn of it
  const LEFT_PX = 56; // for the labels of the y axis

  document.documentElement.dataset.scripted = "";

  // -- size ------------------------------------------------------------------------------------------------------

  // As many columns as have room, but rows of equal length where possible: eight panels are 4 + 4, not 7 + 1. Each column
  // takes its share of what the axes leave.
  function fitted(spec, width, margins) {
    const { panel_px: least, panels, columns: most = 4, left_px: left = LEFT_PX, apart = false } = spec.usermeta;
    const gap = spec.spacing + (apart || spec.concat ? left : 0);
    const room = apart || spec.concat ? width : width - left;
    const fitting = Math.max(1, Math.min(panels, most, Math.floor((room + spec.spacing) / (least + gap))));
    const columns = Math.ceil(panels / Math.ceil(panels / fitting));
    const taken = margins ?? (columns - 1) * gap + left;
    const panel = Math.max(least, Math.floor((width - taken) / columns));
    const sized = (part) => ({ ...part, width: panel });
    const whole = spec.concat ? { concat: spec.concat.map(sized) } : { spec: sized(spec.spec) };
    return { spec: { ...spec, ...whole, columns }, columns, panel };
  }

  function complete(figure, spec) {
    const config = spec.usermeta.legend ? { ...data.config, legend: legendOf(figure) } : data.config;
    return { ...spec, config, datasets: { rows: data.figures[figure.id].rows } };
  }

  function legendOf(figure) {
    return { ...data.legend, columns: Math.max(2, Math.floor(figure.clientWidth / 170)) };
  }

  // -- drawing ---------------------------------------------------------------------------------------------------

  async function draw(figure) {
    const chart = figure.querySelector(".chart");
    const known = live.get(figure);
    const view = known?.view ?? 0;
    const width = chart.clientWidth;
    if (known?.width === width && known.drawn === view) return;
    const state = { view, width, drawn: view };
    live.set(figure, state);
    const spec = complete(figure, data.figures[figure.id].views[view].spec);
    let place = chart.querySelector(".live");
    if (!place) {
      place = document.createElement("div");
      place.className = "live";
      chart.append(place);
    }
    let fit = fitted(spec, width);
    let result = await embed(place, fit.spec);
    const margins = result.view.container().querySelector("svg.marks").width.baseVal.value - fit.columns * fit.panel;
    const better = fitted(spec, width, Math.ceil(margins) + 1);
    if (live.get(figure) !== state) return result.finalize();
    if (Math.abs(better.panel - fit.panel) > 3) {
      result.finalize();
      result = await embed(place, { ...better.spec, columns: fit.columns });
    }
    state.result = result;
    result.view.addEventListener("click", (event, item) => {
      if (item?.datum?.point !== undefined) open(item.datum.point, data.figures[figure.id].measure);
    });
    figure.dataset.drawn = "";
    await show(state);
  }

  function embed(place, spec) {
    return vegaEmbed(place, spec, {
      renderer: "svg",
      logLevel: vega.Error,
      actions: { export: true, source: false, compiled: false, editor: false },
      tooltip: { theme: "custom" },
    });
  }

  async function show(state) {
    const names = [...hidden];
    if (state.result?.view.getState({ signals: (name) => name === "hidden" }).signals.hidden === undefined) return;
    await state.result.view.signal("hidden", names).runAsync();
  }

  const figures = [...document.querySelectorAll("figure")];
  const queue = [...figures];
  let working = Promise.resolve();

  // One at a time: what is in view first, the rest in idle moments, so that a printed page has them all.
  function enqueue(figure) {
    working = working.then(() => draw(figure)).catch((error) => console.error(figure.id, error));
    return working;
  }

  const seen = new IntersectionObserver(
    (entries) => entries.forEach((entry) => entry.isIntersecting && enqueue(entry.target)),
    { rootMargin: "600px" },
  );
  figures.forEach((figure) => seen.observe(figure));

  const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 20));
  function rest() {
    const next = queue.shift();
    if (next) enqueue(next).then(() => later(rest));
    else document.documentElement.dataset.ready = "";
  }
  later(rest);

  let resizing;
  new ResizeObserver(() => {
    clearTimeout(resizing);
    resizing = setTimeout(() => {
      if (!window.matchMedia("print").matches) [...live.keys()].forEach(enqueue);
    }, 150);
  }).observe(document.querySelector("main"));

  // -- legends and views -----------------------------------------------------------------------------------------

  function switched() {
    document.querySelectorAll(".legend [data-protocol]").forEach((button) => {
      button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.protocol)));
    });
    live.forEach(show);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const { protocol, every, view, copy } = button.dataset;
    if (protocol !== undefined) {
      if (!hidden.delete(protocol)) hidden.add(protocol);
      switched();
    } else if (every !== undefined) {
      const names = [...button.closest(".legend").querySelectorAll("[data-protocol]")];
      hidden.clear();
      if (every === "hidden") names.forEach((it) => hidden.add(it.dataset.protocol));
      switched();
    } else if (view !== undefined) {
      const figure = button.closest("figure");
      button.parentElement.querySelectorAll("button").forEach((it) => {
        it.setAttribute("aria-pressed", String(it === button));
      });
      live.set(figure, { ...live.get(figure), view: Number(view) });
      delete figure.dataset.drawn;
      enqueue(figure);
    } else if (copy !== undefined) {
      navigator.clipboard?.writeText(copy).then(() => (button.textContent = "copied"));
    }
  });

  // -- the runs of a point ---------------------------------------------------------------------------------------

  const dialog = document.getElementById("runs");
  const measures = Object.keys(data.measures);

  function element(name, text, ...inside) {
    const made = document.createElement(name);
    made.textContent = text;
    made.append(...inside);
    return made;
  }

  function command(label, text) {
    const button = element("button", "copy");
    button.type = "button";
    button.dataset.copy = text;
    return element("div", "", element("small", label), element("code", text), button);
  }

  function open(point, measure) {
    const known = data.points[point];
    if (!known) return;
    const shown = measures.includes(measure) ? measure : measures[0];
    const [title, unit] = data.measures[shown];
    document.getElementById("runs-title").textContent = known.title;
    document.getElementById("runs-measure").textContent = unit ? `${title}, ${unit}` : title;
    const rows = known.runs.map(([seed, run, values]) => {
      const value = values[measures.indexOf(shown)];
      const told = value === null ? "–" : String(Number(value.toPrecision(4)));
      const name = element("td", "", element("code", run));
      name.append(command("watch", data.watch + run), command("again", data.again + run));
      name.className = "name";
      return element("tr", "", element("td", seed), element("td", told), name);
    });
    dialog.querySelector("tbody").replaceChildren(...rows);
    if (!dialog.open) dialog.showModal();
    history.replaceState(null, "", `#point-${point}`);
  }

  function follow() {
    const point = /^#point-(\d+)$/.exec(location.hash);
    if (point) open(point[1], "");
  }

  window.addEventListener("hashchange", follow);
  dialog.addEventListener("close", () => history.replaceState(null, "", location.pathname + location.search));
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  follow();

  // -- paper -----------------------------------------------------------------------------------------------------

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.more:not([open])")]; // further tables stay as they are
    opened.forEach((it) => (it.open = true));
  });
  window.addEventListener("afterprint", () => opened.forEach((it) => (it.open = false)));
})();
