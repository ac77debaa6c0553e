// The panel of layers: what is drawn, in which colour, switched on and off; and what the run was.

import { facts, dot, make, milliseconds, percent, plural } from "replay/elements.js";

const SWATCH = { width: 26, height: 14 };

export class Legend {
  constructor(panel, app) {
    Object.assign(this, { panel, app });
    this.render();
  }

  render() {
    const { recording, aspects } = this.app;
    const structure = aspects.flatMap((aspect) => this.#aspect(aspect));
    const frames = recording.header.labels.flatMap(({ label, category }, number) =>
      recording.header.has_raw_frames ? [this.#layer(`frame:${number}`, label, null, category.replace("_", "/"))] : []);
    this.panel.replaceChildren(
      make("h3", {}, "Network"),
      this.#layer("links", "in range", this.#line(this.app.palette.link)),
      this.#layer("publishers", "publishers", this.#ring(this.app.palette.publisher)),
      this.#layer("names", "names", null),
      recording.header.has_positions ? "" : make("p", { class: "note" },
        "Only contacts were recorded: those who meet often stand close, distances mean nothing."),
      ...(structure.length ? [make("h3", {}, "Structure"), ...structure] : []),
      ...(structure.length && aspects.some(({ isLink }) => isLink)
        ? [make("p", { class: "note" }, "Arrows point to the peer; dotted: the two do not hear each other.")] : []),
      make("h3", {}, "Events"),
      this.#layer("deliveries", "deliveries", this.#curve(this.app.palette.hue(3))),
      make("p", { class: "note" }, "An arc joins publisher and subscriber while the event is under way. It is not the route."),
      ...(frames.length ? [make("h3", {}, "Frames"), this.#layer("frames", "frames on the air",
        this.#ring(this.app.palette.hue(3))), make("details", {}, make("summary", {}, "by message"), ...frames)] : []),
      make("h3", {}, "This run"),
      this.#facts(),
    );
  }

  #layer(key, name, swatch, remark = null) {
    const box = make("input", { type: "checkbox", "data-layer": key });
    box.checked = this.app.layers[key] ?? true;
    box.addEventListener("change", () => this.app.show(key, box.checked));
    return make("label", { class: "layer" }, box, swatch, make("span", { class: "name", title: name }, name),
      remark ? make("span", { class: "count" }, remark) : null);
  }

  #aspect(aspect) {
    const { palette } = this.app;
    const colour = aspect.keys.length ? aspect.colourOf(aspect.keys[0], palette) : palette.node;
    const swatch = aspect.isLink ? this.#line(colour, 3) : this.#disc(colour);
    const layer = this.#layer(`aspect:${aspect.name}`, aspect.name, swatch, plural(aspect.rows.length, "change"));
    const named = aspect.isNamed && !aspect.isScale && aspect.keys.length > 1 ? aspect.keys.filter((key) => key !== "") : [];
    if (!named.length) return [layer];
    const details = named.map((key) => make("span", { title: key }, dot(aspect.colourOf(key, palette)), key));
    return [layer, make("div", { class: "details" }, ...details)];
  }

  #facts() {
    const { header } = this.app.recording;
    const { summary } = header;
    const settings = { ...header.settings, ...header.parameters };
    return facts(
      ["protocol", header.protocol],
      ["seed", header.seed === null ? null : String(header.seed)],
      ...Object.entries(settings).map(([name, value]) => [name, String(value)]),
      ["nodes", String(header.nodes.length)],
      ["area", header.area_m && header.has_positions ? `${header.area_m.join(" × ")} m` : null],
      ["radio range", header.range_m ? `${header.range_m} m` : null],
      ["events", String(summary.publications)],
      ["delivered", `${summary.delivered} of ${summary.expected} (${percent(summary.delivery_ratio)})`],
      ["of the reachable", percent(summary.delivery_ratio_reachable)],
      ["latency, median", summary.latency_ms_p50 === null ? null : milliseconds(summary.latency_ms_p50 / 1000)],
      ["latency, p95", summary.latency_ms_p95 === null ? null : milliseconds(summary.latency_ms_p95 / 1000)],
      ["hops, mean", summary.hops_mean === null ? null : summary.hops_mean.toFixed(2)],
      ["frames", summary.frames_total.toLocaleString("en")],
      ["run", header.run_id],
    );
  }

  #swatch(paint) {
    const density = window.devicePixelRatio || 1;
    const canvas = make("canvas", { class: "swatch", width: SWATCH.width * density, height: SWATCH.height * density });
    Object.assign(canvas.style, { width: `${SWATCH.width}px`, height: `${SWATCH.height}px` });
    const context = canvas.getContext("2d");
    context.scale(density, density);
    paint(context);
    return canvas;
  }

  #line(colour, width = 1.5) {
    return this.#swatch((context) => {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.moveTo(1, 7);
      context.lineTo(25, 7);
      context.stroke();
    });
  }

  #curve(colour) {
    return this.#swatch((context) => {
      context.strokeStyle = context.fillStyle = colour;
      context.lineWidth = 2;
      context.moveTo(1, 11);
      context.quadraticCurveTo(12, 0, 22, 7);
      context.stroke();
      context.beginPath();
      context.arc(22, 7, 3, 0, 7);
      context.fill();
    });
  }

  #ring(colour) {
    return this.#swatch((context) => {
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.arc(13, 7, 5, 0, 7);
      context.stroke();
    });
  }

  #disc(colour) {
    return this.#swatch((context) => {
      context.fillStyle = colour;
      context.arc(13, 7, 5, 0, 7);
      context.fill();
    });
  }
}
