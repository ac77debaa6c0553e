// The recording: what `data.py` packed, unpacked, and indexed so that any instant and any story is found quickly.
//
// Each group of columns (see the table in data.py) is an object of typed arrays; `t` is its time in seconds, ascending.
// An index by some key is a pair: rows of key k are `items[start[k]] … items[start[k + 1] - 1]`, in order of time.

const ARRAYS = {
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, int16: Int16Array, int32: Int32Array,
  float32: Float32Array, float64: Float64Array,
};

export async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const headerBytes = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, headerBytes)));
  const start = Math.ceil((4 + headerBytes) / 8) * 8;
  const groups = {};
  for (const [name, [type, offset, length]] of Object.entries(header.columns)) {
    const [group, column] = name.split(".");
    groups[group] ??= {};
    groups[group][column] = new ARRAYS[type](buffer, start + offset, length);
  }
  for (const group of Object.values(groups)) {
    if (group.tick) group.t = Float64Array.from(group.tick, (tick) => tick * header.tick_s);
  }
  return new Recording(header, groups);
}

// The first place in ascending `values` whose value is above `limit`.
export function after(values, limit, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function indexBy(keys, count) {
  const start = new Uint32Array(count + 1);
  for (const key of keys) if (key >= 0) start[key + 1] += 1;
  for (let key = 0; key < count; key += 1) start[key + 1] += start[key];
  const items = new Uint32Array(start[count]);
  const next = start.slice();
  for (let row = 0; row < keys.length; row += 1) if (keys[row] >= 0) items[next[keys[row]]++] = row;
  return { start, items };
}

export class Recording {
  constructor(header, groups) {
    Object.assign(this, groups);
    this.header = header;
    this.addresses = header.nodes;
    this.nodes = header.nodes.length;
    this.events = this.event.t.length;
    this.duration = header.duration_s;
    this.deliveriesOf = indexBy(this.delivery.event, this.events);
    this.missedOf = indexBy(this.missed.event, this.events);
    this.framesOf = indexBy(this.frame.event, this.events);
    this.effectsOf = indexBy(this.event.cause, this.events);
    this.pathOf = indexBy(this.position.node, this.nodes);
    this.ofNode = {};
    for (const group of ["event", "delivery", "missed", "structure", "interest", "fault", "dropped"]) {
      this.ofNode[group] = indexBy(this[group].node, this.nodes);
    }
    this.latencyMax = this.delivery.t.reduce((most, t, row) => Math.max(most, t - this.publishedAt(row)), 0);
    this.frameMax = this.frame.airtime_s.reduce((most, airtime) => Math.max(most, airtime), 0);
    this.publishes = new Uint8Array(this.nodes);
    for (const node of this.event.node) this.publishes[node] = 1;
    this.subscribes = new Uint8Array(this.nodes);
    this.interest.node.forEach((node, row) => { if (this.interest.what[row] === 0) this.subscribes[node] = 1; });
    this.#pairUp();
  }

  text(number) {
    return this.header.texts[number];
  }

  rows(index, key) {
    return index.items.subarray(index.start[key], index.start[key + 1]);
  }

  count(index, key) {
    return index.start[key + 1] - index.start[key];
  }

  // When the event of a delivery was published; if it never was, the delivery itself.
  publishedAt(delivery) {
    const event = this.delivery.event[delivery];
    return event < 0 ? this.delivery.t[delivery] : this.event.t[event];
  }

  nodeName(node) {
    return String(this.addresses[node]);
  }

  eventName(event) {
    return `${this.nodeName(this.event.node[event])}#${this.event.number[event]}`;
  }

  content(event) {
    const text = this.text(this.event.text[event]);
    return text || (Number.isNaN(this.event.value[event]) ? "" : String(this.event.value[event]));
  }

  // How many of those who should have got an event did, how many should have, and copies beyond the first.
  reach(event) {
    let delivered = 0;
    let copies = 0;
    for (const row of this.rows(this.deliveriesOf, event)) {
      if (this.delivery.again[row]) copies += 1;
      else delivered += 1;
    }
    return { delivered, expected: delivered + this.count(this.missedOf, event), copies };
  }

  // Where all nodes are, as x, y, x, y, …
  placesAt(t, out = new Float32Array(2 * this.nodes)) {
    const { t: times, x_m: x, y_m: y } = this.position;
    for (let node = 0; node < this.nodes; node += 1) {
      const first = this.pathOf.start[node];
      const end = this.pathOf.start[node + 1];
      if (first === end) continue;
      const next = after(times, t, first, end); // the path of a node is one stretch of the columns
      const from = Math.max(first, next - 1);
      const to = Math.min(end - 1, next);
      const share = to > from ? (t - times[from]) / (times[to] - times[from]) : 0;
      out[2 * node] = x[from] + (x[to] - x[from]) * share;
      out[2 * node + 1] = y[from] + (y[to] - y[from]) * share;
    }
    return out;
  }

  inContact(a, b, t) {
    const pair = this.#pairs.get(Math.min(a, b) * this.nodes + Math.max(a, b));
    if (pair === undefined) return false;
    return after(this.pairChanges[pair], t) % 2 === 1; // changes are begin, end, begin, …
  }

  #pairs = new Map();

  // Distinct pairs of nodes that ever meet, and for each the times at which its contact begins, ends, begins, …
  #pairUp() {
    const { a, b, t } = this.contact;
    this.pairA = [];
    this.pairB = [];
    this.pairChanges = [];
    this.contact.pair = new Uint32Array(t.length);
    for (let row = 0; row < t.length; row += 1) {
      const key = Math.min(a[row], b[row]) * this.nodes + Math.max(a[row], b[row]);
      let pair = this.#pairs.get(key);
      if (pair === undefined) {
        pair = this.pairA.length;
        this.#pairs.set(key, pair);
        this.pairA.push(a[row]);
        this.pairB.push(b[row]);
        this.pairChanges.push([]);
      }
      this.pairChanges[pair].push(t[row]);
      this.contact.pair[row] = pair;
    }
  }

  // The events that led to an event, the first one first, without itself.
  causesOf(event) {
    const causes = [];
    const seen = new Set([event]);
    for (let cause = this.event.cause[event]; cause >= 0 && !seen.has(cause); cause = this.event.cause[cause]) {
      seen.add(cause);
      causes.unshift(cause);
    }
    return causes;
  }
}
