// Draws what travels at one instant: deliveries, frames on the air, faults as they strike, and the chosen event's journey.
//
// Radio is fast and eyes are slow: a delivery takes milliseconds. So what happened stays visible for `glow_s` of
// recorded time, which stands for a moment of watching at any speed, and nothing is drawn before it happened.

import { after } from "replay/recording.js";
import { journey } from "replay/journeys.js";

const TURN = 2 * Math.PI;
const RINGS_MAX = 400; // frames drawn as rings; a storm of more would only be fog
const RING_PX = 15;
const SLOW_S = 0.1;
const ARCS_MAX = 1500;
const CHAIN_MAX = 60; // events of a causal chain whose journeys are drawn
const BEND = 0.14; // of an arc, as a share of its length

export class Traffic {
  constructor(scene) {
    Object.assign(this, { scene, recording: scene.recording, context: scene.context });
    this.journeys = new Map();
  }

  draw(look) {
    const chosen = look.selection?.kind === "event" ? look.selection.event : -1;
    if (look.layers.frames) this.#frames(look, chosen);
    if (chosen >= 0) this.#chain(look, chosen);
    else if (look.layers.deliveries) this.#deliveries(look);
    if (look.layers.deliveries && chosen < 0) this.#publications(look);
    this.#faults(look);
  }

  journey(event) {
    if (!this.journeys.has(event)) this.journeys.set(event, journey(this.recording, event));
    return this.journeys.get(event);
  }

  // Every event of the causal chain that an event belongs to, in order of time.
  chain(event) {
    const members = new Set([...this.recording.causesOf(event), event]);
    for (const member of members) {
      for (const effect of this.recording.rows(this.recording.effectsOf, member)) members.add(effect);
    }
    return [...members].sort((one, other) => one - other);
  }

  // -- everything at once ------------------------------------------------------------------------------------------

  #deliveries({ t, glow_s: glow, selection }) {
    const { delivery, event } = this.recording;
    const only = selection?.kind === "node" ? selection.node : -1;
    const rows = [];
    const first = after(delivery.t, t - glow);
    const end = after(delivery.t, t + this.recording.latencyMax);
    for (let row = first; row < end && rows.length < ARCS_MAX; row += 1) {
      const which = delivery.event[row];
      if (which < 0 || delivery.again[row] || event.t[which] > t) continue;
      if (only < 0 || delivery.node[row] === only || event.node[which] === only) rows.push(row);
    }
    const dense = Math.min(1, Math.max(0.18, 90 / Math.max(1, rows.length)));
    for (const row of rows) {
      const which = delivery.event[row];
      const from_s = event.t[which];
      const until_s = delivery.t[row];
      const share = t >= until_s ? 1 : (t - from_s) / (until_s - from_s);
      const fading = t > until_s ? 1 - (t - until_s) / glow : 1;
      this.#arc(event.node[which], delivery.node[row], share, this.scene.palette.hue(which), fading * dense);
      if (t >= until_s) this.#pulse(delivery.node[row], 1 - fading, this.scene.palette.hue(which), 9);
    }
  }

  #publications({ t, glow_s: glow }) {
    const { event } = this.recording;
    for (let row = after(event.t, t - glow), end = after(event.t, t); row < end; row += 1) {
      this.#pulse(event.node[row], (t - event.t[row]) / glow, this.scene.palette.hue(row), 26);
    }
  }

  #faults({ t, glow_s: glow }) {
    const { fault } = this.recording;
    const { palette } = this.scene;
    const long = 2 * glow;
    for (let row = after(fault.t, t - long), end = after(fault.t, t); row < end; row += 1) {
      const back = ["return", "join"].includes(this.recording.text(fault.text[row]));
      this.#pulse(fault.node[row], (t - fault.t[row]) / long, back ? palette.good : palette.bad, 38);
    }
  }

  // A frame is a ring that grows while it is on the air and then fades; one to a single neighbour is a line.
  #frames({ t, glow_s: glow, layers }, chosen) {
    const { frame, header } = this.recording;
    const { palette, context } = this.scene;
    const first = after(frame.t, t - glow - this.recording.frameMax);
    const end = after(frame.t, t);
    // True to the radio's range only in slow motion, where one frame can be seen on its way; else it would be a fog.
    const range = (header.range_m ?? 0) * this.scene.view.scale;
    const reach = glow < SLOW_S && range > 0 ? range : RING_PX;
    context.lineWidth = 1.4;
    for (let row = Math.max(first, end - RINGS_MAX); row < end; row += 1) {
      const over_s = frame.t[row] + frame.airtime_s[row];
      const age = Math.max(0, (t - over_s) / glow);
      const event = frame.event[row];
      if (age >= 1 || layers[`frame:${frame.label[row]}`] === false) continue;
      const grown = Math.min(1, (t - frame.t[row]) / Math.max(glow / 3, frame.airtime_s[row]));
      const foreign = chosen >= 0 && event !== chosen;
      context.strokeStyle = event >= 0 ? palette.hue(event) : palette.faded;
      context.globalAlpha = (1 - age) * (foreign ? 0.06 : event >= 0 ? 0.36 : 0.2);
      const isLine = frame.peer[row] >= 0 && (event >= 0 || glow < SLOW_S);
      this.#frame(frame.node[row], isLine ? frame.peer[row] : -1, grown, event >= 0 ? reach : Math.min(reach, RING_PX));
    }
    context.globalAlpha = 1;
  }

  #frame(sender, receiver, grown, reach) {
    const { context, at } = this.scene;
    const [x, y] = [at[2 * sender], at[2 * sender + 1]];
    context.beginPath();
    if (receiver >= 0) {
      context.moveTo(x, y);
      context.lineTo(x + (at[2 * receiver] - x) * grown, y + (at[2 * receiver + 1] - y) * grown);
    } else {
      context.arc(x, y, 4 + (reach - 4) * grown, 0, TURN);
    }
    context.stroke();
  }

  // -- one event and its chain -------------------------------------------------------------------------------------

  #chain(look, chosen) {
    const chain = this.chain(chosen).slice(0, CHAIN_MAX);
    for (const event of chain) if (event !== chosen) this.#journey(look, event, 0.45);
    this.#journey(look, chosen, 1);
  }

  #journey({ t }, event, strength) {
    const { context, palette, at } = this.scene;
    const { isRoute, hops } = this.journey(event);
    const colour = palette.hue(event);
    for (const hop of hops) {
      if (hop.from_s > t) continue;
      const share = hop.until_s > hop.from_s ? Math.min(1, (t - hop.from_s) / (hop.until_s - hop.from_s)) : 1;
      if (!isRoute) {
        this.#arc(hop.from, hop.to, share, colour, 0.75 * strength, true);
        continue;
      }
      const [x, y] = [at[2 * hop.from], at[2 * hop.from + 1]];
      const toX = x + (at[2 * hop.to] - x) * share;
      const toY = y + (at[2 * hop.to + 1] - y) * share;
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(toX, toY);
      context.strokeStyle = context.fillStyle = colour;
      context.globalAlpha = strength * (hop.useful ? 0.95 : 0.28);
      context.lineWidth = hop.useful ? 2.6 : 1.2;
      context.stroke();
      if (share < 1) this.#dot(toX, toY, 4);
    }
    context.globalAlpha = 1;
  }

  // On top of the nodes: who has the chosen event, who waits for it, who never got it.
  mark({ t, selection }) {
    if (selection?.kind !== "event") return;
    const { recording, scene } = this;
    const { context, palette, radius } = scene;
    const { event } = selection;
    const colour = palette.hue(event);
    if (recording.event.t[event] <= t) {
      for (const row of recording.rows(recording.deliveriesOf, event)) {
        const node = recording.delivery.node[row];
        this.#halo(node, radius + 3, colour, recording.delivery.t[row] <= t);
      }
      context.setLineDash([2.5, 2.5]);
      for (const row of recording.rows(recording.missedOf, event)) {
        this.#halo(recording.missed.node[row], radius + 4, palette.bad, false);
      }
      context.setLineDash([]);
    }
    for (const member of this.chain(event).slice(0, CHAIN_MAX)) {
      if (member !== event && recording.event.t[member] <= t) this.#star(member, radius + 2);
    }
    this.#star(event, radius + 6);
    scene.name(recording.event.node[event], true);
  }

  // The publisher of an event of the chain.
  #star(event, size) {
    const { context, palette, at } = this.scene;
    const node = this.recording.event.node[event];
    star(context, at[2 * node], at[2 * node + 1], size);
    context.fillStyle = palette.hue(event);
    context.fill();
    context.lineWidth = 1.5;
    context.strokeStyle = palette.nodeEdge;
    context.stroke();
  }

  #halo(node, radius, colour, filled) {
    const { context, at, palette } = this.scene;
    context.beginPath();
    context.arc(at[2 * node], at[2 * node + 1], radius - (filled ? 1 : 0), 0, TURN);
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = 2;
    if (filled) {
      context.fill();
      context.strokeStyle = palette.nodeEdge;
    }
    context.stroke();
  }

  // -- strokes -----------------------------------------------------------------------------------------------------

  // From publisher to subscriber as far as it has come, bent so that it is not taken for a link.
  #arc(from, to, share, colour, alpha, stays = false) {
    const { context, at } = this.scene;
    const [x0, y0, x2, y2] = [at[2 * from], at[2 * from + 1], at[2 * to], at[2 * to + 1]];
    const x1 = (x0 + x2) / 2 - (y2 - y0) * BEND;
    const y1 = (y0 + y2) / 2 + (x2 - x0) * BEND;
    // The first `share` of a quadratic curve is a quadratic curve again (de Casteljau).
    const [ax, ay] = [x0 + (x1 - x0) * share, y0 + (y1 - y0) * share];
    const [bx, by] = [x1 + (x2 - x1) * share, y1 + (y2 - y1) * share];
    const [headX, headY] = [ax + (bx - ax) * share, ay + (by - ay) * share];
    context.beginPath();
    context.moveTo(x0, y0);
    context.quadraticCurveTo(ax, ay, headX, headY);
    context.strokeStyle = context.fillStyle = colour;
    context.globalAlpha = alpha * (share < 1 ? 0.45 : 0.8);
    context.lineWidth = stays ? 2.2 : 1.5;
    context.stroke();
    if (share < 1) {
      context.globalAlpha = alpha;
      this.#dot(headX, headY, 3.5);
    }
    context.globalAlpha = 1;
  }

  #pulse(node, age, colour, size) {
    const { context, at, radius } = this.scene;
    context.beginPath();
    context.arc(at[2 * node], at[2 * node + 1], radius + size * age, 0, TURN);
    context.strokeStyle = colour;
    context.lineWidth = 2.4 * (1 - age) + 0.4;
    context.globalAlpha = 1 - age;
    context.stroke();
    context.globalAlpha = 1;
  }

  #dot(x, y, radius) {
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, TURN);
    this.context.fill();
  }
}

function star(context, x, y, radius) {
  context.beginPath();
  for (let corner = 0; corner < 10; corner += 1) {
    const length = corner % 2 ? radius * 0.45 : radius;
    const angle = (corner * TURN) / 10 - TURN / 4;
    context.lineTo(x + length * Math.cos(angle), y + length * Math.sin(angle));
  }
  context.closePath();
}
