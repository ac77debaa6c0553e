// The panel that tells the story of the chosen node or event.

import { facts, dot, make, milliseconds, percent, plural, seconds } from "replay/elements.js";
import { eventRow } from "replay/feed.js";
import { after } from "replay/recording.js";

const LOG_ROWS = 80; // of a node's diary, before the current time
const LOG_AHEAD = 5;
const NO_PATH = -1;
const INTEREST = ["subscribes to", "no longer wants", "advertises"];

export class Stories {
  constructor(panel, app) {
    Object.assign(this, { panel, app, shown: "" });
  }

  update(t) {
    if (this.panel.hidden) return;
    const { selection } = this.app;
    const state = JSON.stringify([selection, this.app.palette.isLight, selection?.kind === "node" ? this.#state(selection.node, t) : 0]);
    if (state === this.shown) return;
    this.shown = state;
    const scrolled = this.panel.scrollTop;
    if (!selection) this.panel.replaceChildren(this.#nothing());
    else if (selection.kind === "node") this.panel.replaceChildren(...this.#node(selection.node, t));
    else this.panel.replaceChildren(...this.#event(selection.event));
    this.panel.scrollTop = scrolled;
  }

  // Everything that a node's story depends on: it is told anew only if one of these changed.
  #state(node, t) {
    const { moment } = this.app;
    return [moment.up[node], moment.is.map((nodes) => nodes[node]), this.#neighbours(node).length, this.#diaryOf(node).past(t)];
  }

  #nothing() {
    return make("p", { class: "faded" }, "Click a node on the map, or an event in the list, to see its story.");
  }

  // -- an event ----------------------------------------------------------------------------------------------------

  #event(event) {
    const { recording, palette } = this.app;
    const { delivered, expected, copies } = recording.reach(event);
    const publisher = recording.event.node[event];
    const chain = this.app.scene.traffic.chain(event);
    const { isRoute } = this.app.scene.traffic.journey(event);
    return [
      make("h2", {}, dot(palette.hue(event)), `Event ${recording.eventName(event)}`),
      facts(
        ["published", this.#instant(recording.event.t[event])],
        ["by", this.#nodeLink(publisher)],
        ["content", recording.content(event)],
        ["payload", plural(recording.event.bytes[event], "byte")],
        ["arrived", `${delivered} of ${expected}` + (expected ? ` (${percent(delivered / expected)})` : "")],
        ["again", copies ? plural(copies, "copy", "copies") : null],
        ["frames", isRoute ? String(recording.count(recording.framesOf, event)) : null],
        ["sent by", isRoute ? plural(this.#senders(event), "node") : null],
      ),
      make("div", { class: "actions" },
        make("button", { type: "button", class: "primary", id: "follow", onclick: () => this.app.follow(event) },
          "Follow in slow motion"),
        make("button", { type: "button", onclick: () => this.app.select(null) }, "Close")),
      this.#marks(event),
      ...(isRoute ? [make("p", { class: "note" },
        "The route is read off the recorded frames: certain where a frame had one receiver, likely for relays.")] : []),
      ...(chain.length > 1 ? [make("h3", {}, `Causal chain (${plural(chain.length, "event")})`), this.#tree(chain[0], recording.event.t[chain[0]])] : []),
      ...this.#arrivals(event),
      ...this.#missed(event),
      ...this.#givenUp(event),
    ];
  }

  #senders(event) {
    const { recording } = this.app;
    return new Set([...recording.rows(recording.framesOf, event)].map((row) => recording.frame.node[row])).size;
  }

  // What the marks on the map mean.
  #marks(event) {
    const { palette } = this.app;
    const colour = palette.hue(event);
    return make("p", { class: "marks" },
      make("span", {}, make("i", { style: { color: colour, background: colour } }), "has it"),
      make("span", {}, make("i", { style: { color: colour } }), "will get it"),
      make("span", {}, make("i", { style: { color: palette.bad, borderStyle: "dashed" } }), "never does"));
  }

  // The chain as a tree, from the event that nothing caused.
  #tree(event, since_s) {
    const { recording } = this.app;
    const effects = [...recording.rows(recording.effectsOf, event)].flatMap((each) => [...this.#tree(each, since_s).children]);
    const below = effects.length ? make("ul", { class: "chain" }, ...effects) : null;
    return make("ul", { class: "chain" }, make("li", {}, eventRow(this.app, event, false, since_s), below));
  }

  #arrivals(event) {
    const { recording, palette } = this.app;
    const { delivery } = recording;
    const rows = [...recording.rows(recording.deliveriesOf, event)].filter((row) => !delivery.again[row]);
    if (!rows.length) return [];
    const slowest = Math.max(...rows.map((row) => delivery.latency_s[row]), 1e-9);
    const lines = rows.map((row) => make("div", { class: "arrival" },
      this.#nodeLink(delivery.node[row]),
      make("span", { class: "bar" }, make("b", {
        style: { width: `${(100 * delivery.latency_s[row]) / slowest}%`, background: palette.hue(event) },
      })),
      make("span", {}, milliseconds(delivery.latency_s[row])),
      make("span", { title: "hops (shortest path)" }, hopsText(delivery.hops[row], delivery.shortest[row]))));
    return [make("h3", {}, "Arrivals, by time"), ...lines];
  }

  #missed(event) {
    const { recording } = this.app;
    const rows = [...recording.rows(recording.missedOf, event)];
    if (!rows.length) return [];
    const tags = rows.map((row) => make("button", {
      type: "button", onclick: () => this.app.select({ kind: "node", node: recording.missed.node[row] }),
      title: recording.missed.shortest[row] === NO_PATH ? "there was no path when it was published" : "",
    }, recording.nodeName(recording.missed.node[row]) + (recording.missed.shortest[row] === NO_PATH ? " (no path)" : "")));
    return [make("h3", { class: "bad" }, `Never got it (${rows.length})`), make("div", { class: "tags" }, ...tags)];
  }

  #givenUp(event) {
    const { recording } = this.app;
    const { dropped } = recording;
    const rows = [...dropped.event.keys()].filter((row) => dropped.event[row] === event);
    if (!rows.length) return [];
    const lines = rows.map((row) => make("p", {}, this.#instant(dropped.t[row]), " ", this.#nodeLink(dropped.node[row]),
      `: ${recording.text(dropped.text[row])}`));
    return [make("h3", {}, "Given up"), ...lines];
  }

  // -- a node ------------------------------------------------------------------------------------------------------

  #node(node, t) {
    const { recording, moment, aspects, palette } = this.app;
    const roles = aspects.flatMap((aspect) => moment.rowsAt(aspect, node).map((row) => {
      const peer = recording.structure.peer[row];
      const target = peer >= 0 ? this.#nodeLink(peer) : null;
      const words = aspect.words(row);
      return [aspect.name, make("span", {}, target, target && words ? " · " : "", words || (target ? "" : "yes"))];
    }));
    const published = recording.count(recording.ofNode.event, node);
    const got = [...recording.rows(recording.ofNode.delivery, node)].filter((row) => !recording.delivery.again[row]).length;
    return [
      make("h2", {}, dot(moment.up[node] ? palette.node : palette.bad), `Node ${recording.nodeName(node)}`,
        moment.up[node] ? null : make("span", { class: "bad" }, "down")),
      facts(
        ...roles,
        ["neighbours", String(this.#neighbours(node).length)],
        ["published", published ? plural(published, "event") : null],
        ["got", plural(got, "event")],
        ["missed", String(recording.count(recording.ofNode.missed, node))],
        ["sent", recording.load.frames[node] ? plural(recording.load.frames[node], "frame") : null],
        ["airtime", recording.load.airtime_s[node] ? milliseconds(recording.load.airtime_s[node]) : null],
      ),
      ...this.#interests(node, t),
      make("h3", {}, "What happened to it"),
      ...this.#diary(node, t),
      make("div", { class: "actions" }, make("button", { type: "button", onclick: () => this.app.select(null) }, "Close")),
    ];
  }

  #interests(node, t) {
    const { recording } = this.app;
    const open = new Set();
    for (const row of recording.rows(recording.ofNode.interest, node)) {
      if (recording.interest.t[row] > t) break;
      if (recording.interest.what[row] === 0) open.add(recording.interest.text[row]);
      else if (recording.interest.what[row] === 1) open.delete(recording.interest.text[row]);
    }
    if (!open.size) return [];
    const tags = [...open].map((text) => make("span", { title: recording.text(text) }, recording.text(text)));
    return [make("h3", {}, "Wants"), make("div", { class: "tags" }, ...tags)];
  }

  #neighbours(node) {
    const { recording, moment } = this.app;
    const found = [];
    for (let pair = 0; pair < recording.pairA.length; pair += 1) {
      if (!moment.met[pair] || !moment.up[node]) continue;
      const [a, b] = [recording.pairA[pair], recording.pairB[pair]];
      if (a === node && moment.up[b]) found.push(b);
      else if (b === node && moment.up[a]) found.push(a);
    }
    return found;
  }

  // A node's rows of every kind in order of time.
  #diaryOf(node) {
    if (this.diary?.node !== node) {
      const { recording } = this.app;
      const entries = Object.entries(recording.ofNode).flatMap(([group, index]) =>
        group === "missed" ? [] : [...recording.rows(index, node)].map((row) => ({ group, row, t: recording[group].t[row] })));
      entries.sort((one, other) => one.t - other.t);
      const times = Float64Array.from(entries, (entry) => entry.t);
      this.diary = { node, entries, past: (t) => after(times, t) };
    }
    return this.diary;
  }

  // A window of them around now, the latest first.
  #diary(node, t) {
    const { entries, past } = this.#diaryOf(node);
    const shown = entries.slice(Math.max(0, past(t) - LOG_ROWS), past(t) + LOG_AHEAD).reverse();
    if (!shown.length) return [make("p", { class: "faded" }, "Nothing yet.")];
    return shown.map((entry) => this.#entry(entry, t));
  }

  #entry({ group, row, t: at }, now) {
    const { recording, palette } = this.app;
    const event = { event: row, delivery: recording.delivery.event[row], dropped: recording.dropped.event[row] }[group] ?? -1;
    const words = this.#words(group, row);
    const act = event >= 0 ? () => this.app.select({ kind: "event", event }) : () => this.app.seek(at);
    return make("button", { type: "button", class: at > now ? "row later" : "row", title: words, onclick: act },
      make("span", { class: "time" }, `${at.toFixed(2)} s`),
      make("span", { class: "what" }, ...(event >= 0 ? [dot(palette.hue(event)), " "] : []), words), make("span"));
  }

  #words(group, row) {
    const { recording } = this.app;
    switch (group) {
      case "event": return `published ${recording.eventName(row)} ${recording.content(row)}`;
      case "delivery": {
        const event = recording.delivery.event[row];
        const name = event < 0 ? "an event" : recording.eventName(event);
        return `got ${name}${recording.delivery.again[row] ? " again" : ""} after ${milliseconds(recording.delivery.latency_s[row])}`;
      }
      case "structure": {
        const peer = recording.structure.peer[row];
        const aspect = this.app.aspects[recording.structure.aspect[row]];
        const ends = aspect.key(row) === null ? "no " : "";
        return [ends + aspect.name, peer >= 0 ? `→ ${recording.nodeName(peer)}` : "", aspect.words(row)].filter(Boolean).join(" ");
      }
      case "interest": return `${INTEREST[recording.interest.what[row]]} ${recording.text(recording.interest.text[row])}`;
      case "dropped": return `gave up: ${recording.text(recording.dropped.text[row])}`;
      default: return recording.text(recording[group].text[row]);
    }
  }

  // -- links -------------------------------------------------------------------------------------------------------

  #nodeLink(node) {
    const act = () => this.app.select({ kind: "node", node });
    return make("button", { type: "button", class: "link", "data-node": node, onclick: act }, `node ${this.app.recording.nodeName(node)}`);
  }

  #instant(t) {
    return make("button", { type: "button", class: "link", onclick: () => this.app.seek(t) }, seconds(t));
  }
}

function hopsText(hops, shortest) {
  if (hops < 0) return "";
  return `${plural(hops, "hop")}${shortest > 0 ? ` (${shortest})` : ""}`;
}
