// What protocols say about their structure, told apart without knowing any protocol.
//
// An aspect (`parent`, `home`, `link`, `cell`, …) whose rows name a peer is drawn as links. Most of them are what a node
// has one of, so its next row replaces the last. An aspect is a *set* if a node names several peers at the same instant,
// or if it switches peers on and off with the values 1 and 0; then each peer of a node is a link of its own.
// Any other aspect is a mark on the node. Colours follow what the row says in detail (a tree's root, a cell, a role); an
// aspect that says only numbers is a *scale*, from little to much.
//
// Two names are known: in `forwarding` the peer is the group that a node relays for, not a neighbour, so it is a mark in
// the group's colour; a `cell` whose detail is column and row and whose value is the side of a square lies on the ground.

const NAMED_KEYS = 8; // more are told apart by hue, but not listed
const SHORT_LINKS_MAX = 3; // per node: more would hide the network
const LONG_LINKS_MAX = 0.9; // the same if most of them cross the map
const GROUPS = new Set(["forwarding"]);

export class Aspect {
  constructor(recording, number) {
    const { structure } = recording;
    this.recording = recording;
    this.number = number;
    this.name = recording.header.aspects[number];
    this.rows = [...structure.aspect.keys()].filter((row) => structure.aspect[row] === number);
    const hasPeers = this.rows.some((row) => structure.peer[row] >= 0);
    this.isGroup = hasPeers && GROUPS.has(this.name);
    this.isLink = hasPeers && !this.isGroup;
    this.isSet = hasPeers && (this.#switches() || this.#namesSeveral());
    this.isScale = !hasPeers && this.rows.every((row) => structure.text[row] === 0) &&
      new Set(this.rows.map((row) => structure.value[row])).size > 2;
    this.most = this.rows.reduce((most, row) => Math.max(most, structure.value[row]), 0);
    this.#sortKeys();
    this.isGround = this.name === "cell" && this.keys.every((key) => /^-?\d+ -?\d+$/.test(key));
    // What has too many colours or lines to be understood waits until it is asked for.
    const clear = this.isLink ? this.#linksAtEnd() <= this.#bearable() * recording.nodes : this.isNamed && !this.isScale;
    this.isShownAtFirst = clear || this.isGround || this.isGroup;
  }

  #switches() {
    const { structure } = this.recording;
    const values = new Set(this.rows.filter((row) => structure.peer[row] >= 0).map((row) => structure.value[row]));
    return values.size === 2 && values.has(0) && values.has(1);
  }

  #namesSeveral() {
    const { structure } = this.recording;
    const last = new Map(); // node -> its latest row
    return this.rows.some((row) => {
      const before = last.get(structure.node[row]);
      last.set(structure.node[row], row);
      return before !== undefined && structure.tick[before] === structure.tick[row] && structure.peer[row] >= 0 &&
        structure.peer[before] >= 0 && structure.peer[before] !== structure.peer[row];
    });
  }

  #bearable() {
    const { structure } = this.recording;
    const links = this.rows.filter((row) => structure.peer[row] >= 0);
    const short = links.filter((row) => this.recording.inContact(structure.node[row], structure.peer[row], structure.t[row]));
    return short.length >= links.length / 2 ? SHORT_LINKS_MAX : LONG_LINKS_MAX;
  }

  #linksAtEnd() {
    const { structure } = this.recording;
    const last = new Map();
    for (const row of this.rows) last.set(this.isSet ? `${structure.node[row]} ${structure.peer[row]}` : structure.node[row], row);
    return [...last.values()].filter((row) => this.key(row) !== null && structure.peer[row] >= 0).length;
  }

  #sortKeys() {
    const counts = new Map();
    for (const row of this.rows) {
      const key = this.key(row);
      if (key !== null) counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    this.keys = [...counts.keys()].sort((one, other) => counts.get(other) - counts.get(one));
    this.places = new Map(this.keys.map((key, place) => [key, place]));
    this.isNamed = this.keys.length <= NAMED_KEYS;
  }

  // What its colour depends on; null if the row says that the node is nothing any more.
  key(row) {
    const { structure } = this.recording;
    if (this.isSet && structure.value[row] === 0) return null;
    if (this.isGroup) return this.recording.nodeName(structure.peer[row]);
    const text = this.recording.text(structure.text[row]);
    if (text) return text;
    if (structure.peer[row] >= 0) return "";
    return structure.value[row] ? String(structure.value[row]) : null;
  }

  // The rank of what a row says, by how often it is said.
  place(row) {
    return this.places.get(this.key(row)) ?? -1;
  }

  colour(row, palette) {
    const key = this.key(row);
    if (key === null) return null;
    return this.isScale ? palette.scale(this.recording.structure.value[row] / this.most) : this.colourOf(key, palette);
  }

  colourOf(key, palette) {
    if (this.isScale) return palette.scale(1);
    const place = this.places.get(key);
    return this.isNamed ? palette.kind(place + this.number) : palette.hue(place);
  }

  // A row in words, for tips and stories; the caller may turn the peer into a link.
  words(row) {
    const { structure } = this.recording;
    const value = structure.value[row] && !this.isSet ? String(Number(structure.value[row].toPrecision(4))) : "";
    return [this.recording.text(structure.text[row]), value].filter(Boolean).join(" · ");
  }
}

export function aspectsOf(recording) {
  return recording.header.aspects.map((_, number) => new Aspect(recording, number));
}

// Column, row and side of the cells in which nodes say they are, each once.
export function cellsNow(aspect, moment) {
  const { structure } = aspect.recording;
  const cells = new Map();
  for (const row of moment.rowsOf(aspect)) {
    const key = aspect.key(row);
    if (key === null || cells.has(key)) continue;
    const [column, line] = key.split(" ").map(Number);
    cells.set(key, { key, column, line, side_m: structure.value[row] });
  }
  return cells.values();
}
