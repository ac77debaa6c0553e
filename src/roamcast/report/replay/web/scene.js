// Draws the network at one instant: the ground, who hears whom, the structure, and the nodes on top.
//
// What travels (deliveries, frames, the chosen event) is drawn by `traffic.js` between structure and nodes.

import { cellsNow } from "replay/structure.js";
import { Traffic } from "replay/traffic.js";

const LABELLED_NODES = 60; // beyond this, names would hide the map unless it is zoomed
const MARKS_MAX = 4;
const TURN = 2 * Math.PI;

export class Scene {
  constructor(view, recording, moment, aspects, palette) {
    Object.assign(this, { view, recording, moment, aspects, palette });
    this.context = view.context;
    this.places_m = new Float32Array(2 * recording.nodes);
    this.at = new Float32Array(2 * recording.nodes); // the same in pixels
    this.heads = new Set(); // nodes that others point to now
    this.traffic = new Traffic(this);
  }

  // `look` says what to show: t, glow_s (how long what happened stays visible), layers, selection, hover.
  draw(look) {
    const { view, recording, context } = this;
    view.fit();
    this.moment.seek(look.t);
    recording.placesAt(look.t, this.places_m);
    for (let node = 0; node < recording.nodes; node += 1) {
      this.at[2 * node] = view.x(this.places_m[2 * node]);
      this.at[2 * node + 1] = view.y(this.places_m[2 * node + 1]);
    }
    const crowd = Math.min(7, Math.max(3.2, 7.5 - recording.nodes / 60));
    this.radius = crowd * Math.min(2.2, view.zoom ** 0.4);
    context.clearRect(0, 0, view.width, view.height);
    this.heads.clear();
    this.#ground(look);
    if (look.layers.links) this.#links(look);
    for (const aspect of this.aspects) {
      if (aspect.isLink && look.layers[`aspect:${aspect.name}`]) this.#structure(aspect, look);
    }
    this.traffic.draw(look);
    this.#nodes(look);
    this.traffic.mark(look);
    this.#names(look);
    this.#scaleBar();
  }

  nodeAt(x_px, y_px) {
    let best = -1;
    let bestDistance = Math.max(12, this.radius + 5);
    for (let node = 0; node < this.recording.nodes; node += 1) {
      const distance = Math.hypot(this.at[2 * node] - x_px, this.at[2 * node + 1] - y_px);
      if (distance < bestDistance) [best, bestDistance] = [node, distance];
    }
    return best;
  }

  #rectangle(west, south, east, north) {
    const { view } = this;
    return [view.x(west), view.y(north), view.x(east) - view.x(west), view.y(south) - view.y(north)];
  }

  #ground(look) {
    const { context, palette, recording } = this;
    const { area_m: area, partitions } = recording.header;
    if (area && recording.header.has_positions) {
      context.strokeStyle = palette.border;
      context.lineWidth = 1;
      context.strokeRect(...this.#rectangle(0, 0, ...area));
    }
    for (const aspect of this.aspects) {
      if (aspect.isGround && look.layers[`aspect:${aspect.name}`]) this.#cells(aspect);
    }
    for (const part of partitions) {
      if (part.from_s > look.t || look.t >= part.until_s) continue;
      const place = this.#rectangle(part.west_m, part.south_m, part.east_m, part.north_m);
      context.fillStyle = context.strokeStyle = palette.bad;
      context.globalAlpha = 0.08;
      context.fillRect(...place);
      context.globalAlpha = 0.8;
      context.setLineDash([7, 5]);
      context.strokeRect(...place);
      context.setLineDash([]);
      context.globalAlpha = 1;
    }
  }

  #cells(aspect) {
    const { context, palette } = this;
    for (const { key, column, line, side_m: side } of cellsNow(aspect, this.moment)) {
      context.fillStyle = context.strokeStyle = aspect.colourOf(key, palette);
      const place = this.#rectangle(column * side, line * side, (column + 1) * side, (line + 1) * side);
      context.globalAlpha = 0.13;
      context.fillRect(...place);
      context.globalAlpha = 0.35;
      context.strokeRect(...place);
    }
    context.globalAlpha = 1;
  }

  #links(look) {
    const { context, at, moment, recording, palette } = this;
    const { pairA, pairB } = recording;
    const chosen = look.selection?.kind === "node" ? look.selection.node : -1;
    const own = new Path2D();
    const all = new Path2D();
    let count = 0;
    for (let pair = 0; pair < pairA.length; pair += 1) {
      const a = pairA[pair];
      const b = pairB[pair];
      if (!moment.met[pair] || !moment.up[a] || !moment.up[b]) continue;
      const path = a === chosen || b === chosen ? own : all;
      path.moveTo(at[2 * a], at[2 * a + 1]);
      path.lineTo(at[2 * b], at[2 * b + 1]);
      count += 1;
    }
    context.strokeStyle = palette.link;
    context.lineWidth = 1;
    context.globalAlpha = Math.min(0.45, Math.max(palette.isLight ? 0.24 : 0.16, 90 / Math.max(1, count))) * (chosen < 0 ? 1 : 0.6);
    context.stroke(all);
    context.globalAlpha = 0.6;
    context.strokeStyle = palette.ink;
    context.stroke(own);
    context.globalAlpha = 1;
  }

  // Links of the structure with an arrow towards the peer; dashed where the two do not hear each other.
  #structure(aspect, look) {
    const { context, recording, moment, at, palette } = this;
    const { structure } = recording;
    const paths = new Map();
    for (const row of moment.rowsOf(aspect)) {
      const node = structure.node[row];
      const peer = structure.peer[row];
      if (peer < 0) continue;
      this.heads.add(peer);
      const colour = aspect.colour(row, palette);
      if (!paths.has(colour)) paths.set(colour, { heard: new Path2D(), apart: new Path2D(), arrows: new Path2D() });
      const { heard, apart, arrows } = paths.get(colour);
      const [fromX, fromY, toX, toY] = [at[2 * node], at[2 * node + 1], at[2 * peer], at[2 * peer + 1]];
      const path = moment.up[peer] && recording.inContact(node, peer, moment.t) ? heard : apart;
      path.moveTo(fromX, fromY);
      path.lineTo(toX, toY);
      arrow(arrows, fromX, fromY, toX, toY, 3 + this.radius * 0.65);
    }
    const strength = look.selection?.kind === "event" ? 0.4 : 1; // steps back behind a journey
    context.lineWidth = Math.max(1.8, this.radius * 0.4);
    for (const [colour, { heard, apart, arrows }] of paths) {
      context.strokeStyle = context.fillStyle = colour;
      context.globalAlpha = 0.85 * strength;
      context.stroke(heard);
      context.fill(arrows);
      context.globalAlpha = 0.6 * strength;
      context.setLineDash([2, 5]);
      context.stroke(apart);
      context.setLineDash([]);
    }
    context.globalAlpha = 1;
  }

  #nodes(look) {
    const { context, recording, moment, at, palette, radius } = this;
    for (let node = 0; node < recording.nodes; node += 1) {
      const x = at[2 * node];
      const y = at[2 * node + 1];
      if (!moment.up[node]) {
        this.#cross(x, y);
        continue;
      }
      const colours = this.#marks(node, look);
      context.beginPath();
      context.arc(x, y, radius, 0, TURN);
      context.fillStyle = colours[0] ?? palette.node;
      context.fill();
      context.lineWidth = 1.2;
      context.strokeStyle = palette.nodeEdge;
      context.stroke();
      if (this.#isHead(node, look)) this.#ring(x, y, radius + 3.5, colours[0], 3);
      colours.slice(1).forEach((colour, ring) => this.#ring(x, y, radius + 2.5 + 3 * ring, colour, 2));
      if (recording.publishes[node] && look.layers.publishers) {
        this.#ring(x, y, radius + 2.2 + 3 * Math.max(0, colours.length - 1), palette.publisher, 1.6);
      }
    }
    if (look.selection?.kind === "node") {
      const { node } = look.selection;
      this.#ring(at[2 * node], at[2 * node + 1], radius + 5.5, palette.accent, 2.5);
      this.#range(node);
    }
    if (look.hover >= 0) this.#ring(at[2 * look.hover], at[2 * look.hover + 1], radius + 4, palette.ink, 1.3);
  }

  // Colours of what the node is, in order of the aspects: the first fills it, the others are rings around it.
  #marks(node, look) {
    const colours = [];
    for (const aspect of this.aspects) {
      if (!look.layers[`aspect:${aspect.name}`] || (aspect.isLink && aspect.isSet)) continue;
      const rows = [...this.moment.rowsAt(aspect, node)].sort((one, other) => aspect.place(one) - aspect.place(other));
      for (const row of rows) colours.push(aspect.colour(row, this.palette));
    }
    return colours.slice(0, MARKS_MAX);
  }

  // Whether others point to it and it points to no node: the root of a tree.
  #isHead(node, look) {
    if (!this.heads.has(node)) return false;
    const { peer } = this.recording.structure;
    return this.aspects.some((aspect) => aspect.isLink && look.layers[`aspect:${aspect.name}`] &&
      this.moment.rowsAt(aspect, node).some((row) => peer[row] < 0));
  }

  #ring(x, y, radius, colour, width) {
    const { context } = this;
    context.beginPath();
    context.arc(x, y, radius, 0, TURN);
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }

  #cross(x, y) {
    const { context, palette } = this;
    const arm = this.radius * 0.75;
    context.strokeStyle = palette.down;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x - arm, y - arm);
    context.lineTo(x + arm, y + arm);
    context.moveTo(x + arm, y - arm);
    context.lineTo(x - arm, y + arm);
    context.stroke();
  }

  #range(node) {
    const { range_m: range } = this.recording.header;
    if (!range) return;
    this.context.setLineDash([3, 5]);
    this.context.globalAlpha = 0.7;
    this.#ring(this.at[2 * node], this.at[2 * node + 1], range * this.view.scale, this.palette.accent, 1.2);
    this.context.globalAlpha = 1;
    this.context.setLineDash([]);
  }

  #names(look) {
    const { recording, view } = this;
    const everybody = look.layers.names && (recording.nodes <= LABELLED_NODES || view.zoom > 2.5);
    const named = look.selection?.kind === "event" ? recording.event.node[look.selection.event] : -1; // has its name already
    for (let node = 0; node < recording.nodes; node += 1) {
      const chosen = node === look.hover || (look.selection?.kind === "node" && look.selection.node === node);
      if ((everybody || chosen) && node !== named) this.name(node, chosen);
    }
  }

  name(node, chosen = false) {
    const { context, palette, at, radius } = this;
    context.font = `${chosen ? 650 : 450} ${chosen ? 13 : 11}px system-ui, sans-serif`;
    context.lineJoin = "round";
    context.lineWidth = 3;
    context.strokeStyle = palette.area;
    context.fillStyle = chosen ? palette.ink : palette.faded;
    const x = at[2 * node] + radius + 3;
    const y = at[2 * node + 1] - radius - 1;
    context.strokeText(this.recording.nodeName(node), x, y);
    context.fillText(this.recording.nodeName(node), x, y);
  }

  #scaleBar() {
    const { context, palette, view, recording } = this;
    if (!recording.header.has_positions) return;
    const about_m = 110 / view.scale;
    const unit = 10 ** Math.floor(Math.log10(about_m));
    const length_m = unit * [5, 2, 1].find((step) => step * unit <= about_m);
    const length = length_m * view.scale;
    const y = view.height - 14;
    context.strokeStyle = context.fillStyle = palette.faded;
    context.lineWidth = 1.2;
    context.beginPath();
    context.moveTo(14, y - 4);
    context.lineTo(14, y);
    context.lineTo(14 + length, y);
    context.lineTo(14 + length, y - 4);
    context.stroke();
    context.font = "11px system-ui, sans-serif";
    context.fillText(`${length_m} m`, 20 + length, y + 1);
  }
}

function arrow(path, fromX, fromY, toX, toY, size) {
  const length = Math.hypot(toX - fromX, toY - fromY);
  if (length < 4 * size) return;
  const x = (toX - fromX) / length;
  const y = (toY - fromY) / length;
  const tipX = fromX + (toX - fromX) * 0.6;
  const tipY = fromY + (toY - fromY) * 0.6;
  path.moveTo(tipX, tipY);
  path.lineTo(tipX - size * x + 0.55 * size * y, tipY - size * y - 0.55 * size * x);
  path.lineTo(tipX - size * x - 0.55 * size * y, tipY - size * y + 0.55 * size * x);
  path.closePath();
}
