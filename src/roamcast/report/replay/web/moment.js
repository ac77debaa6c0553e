// The network at one instant: who is up, who hears whom, who is what in the structure.
//
// Going forward applies what happened since; going back starts again from the beginning, which takes a few milliseconds
// even for long recordings.

const GOES = new Set(["crash", "leave"]);

export class Moment {
  constructor(recording, aspects) {
    this.recording = recording;
    this.aspects = aspects;
    this.t = -1;
    this.up = new Uint8Array(recording.nodes);
    this.met = new Uint8Array(recording.pairA.length); // per pair: in contact now
    this.is = aspects.map(() => Array.from({ length: recording.nodes }, () => [])); // per aspect and node: its rows
    this.isLate = new Uint8Array(recording.nodes);
    const { fault } = recording;
    const seen = new Set();
    fault.node.forEach((node, row) => {
      if (!seen.has(node) && recording.text(fault.text[row]) === "join") this.isLate[node] = 1;
      seen.add(node);
    });
    this.#reset();
  }

  seek(t) {
    if (t < this.t) this.#reset();
    this.t = t;
    this.#meet(t);
    this.#change(t);
  }

  // The rows by which a node is something now.
  rowsAt(aspect, node) {
    return this.is[aspect.number][node];
  }

  // The same of all nodes.
  rowsOf(aspect) {
    return this.is[aspect.number].flat();
  }

  #reset() {
    this.t = -1;
    this.met.fill(0);
    for (const nodes of this.is) nodes.forEach((_, node) => { nodes[node] = []; });
    this.up.forEach((_, node) => { this.up[node] = this.isLate[node] ? 0 : 1; });
    this.contacts = 0;
    this.changes = 0;
    this.faults = 0;
  }

  #meet(t) {
    const { contact } = this.recording;
    while (this.contacts < contact.t.length && contact.t[this.contacts] <= t) {
      this.met[contact.pair[this.contacts]] = contact.up[this.contacts];
      this.contacts += 1;
    }
  }

  // Faults and structure in one order of time; at the same instant a node is switched before it says what it is.
  #change(t) {
    const { fault, structure } = this.recording;
    for (;;) {
      const faultAt = this.faults < fault.t.length ? fault.t[this.faults] : Infinity;
      const changeAt = this.changes < structure.t.length ? structure.t[this.changes] : Infinity;
      if (Math.min(faultAt, changeAt) > t) return;
      if (faultAt <= changeAt) this.#strike(this.faults++);
      else this.#restructure(this.changes++);
    }
  }

  #strike(row) {
    const { fault } = this.recording;
    const node = fault.node[row];
    const goes = GOES.has(this.recording.text(fault.text[row]));
    this.up[node] = goes ? 0 : 1;
    if (goes) for (const nodes of this.is) nodes[node] = [];
  }

  #restructure(row) {
    const { structure } = this.recording;
    const aspect = this.aspects[structure.aspect[row]];
    const nodes = this.is[aspect.number];
    const node = structure.node[row];
    const others = aspect.isSet ? nodes[node].filter((each) => structure.peer[each] !== structure.peer[row]) : [];
    nodes[node] = aspect.key(row) === null ? others : [...others, row];
  }
}
