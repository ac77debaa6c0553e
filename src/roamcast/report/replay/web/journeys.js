// How an event travelled.
//
// If frames were recorded one by one, each of them names its sender and the event it carries, and a frame to one neighbour
// names the receiver too. A broadcast does not say who understood it. So a hop is read off like this: a node that got the
// event (it delivered or sent it) had it from a frame of a node in contact, sent before; if the node delivered it, from
// the one whose end fits the delivery, otherwise from the first. That is certain for frames to one neighbour and for
// deliveries, and likely for relays.
//
// If frames were only counted, the way is not known. Then a hop joins publisher and subscriber directly and is marked as
// no route.

export function journey(recording, event) {
  const arrivals = firstArrivals(recording, event);
  const frames = recording.rows(recording.framesOf, event);
  if (!frames.length) return { isRoute: false, hops: direct(recording, event, arrivals) };
  const hops = [];
  const had = new Map([[recording.event.node[event], recording.event.t[event]]]);
  for (const frame of frames) {
    const sender = recording.frame.node[frame];
    if (!had.has(sender)) had.set(sender, recording.frame.t[frame]);
  }
  const nodes = new Map(arrivals);
  for (const [node, t] of had) if (!nodes.has(node)) nodes.set(node, t);
  nodes.delete(recording.event.node[event]);
  for (const [node, t] of nodes) {
    const hop = lastHop(recording, frames, node, t, arrivals.has(node));
    if (hop) hops.push(hop);
  }
  markUseful(hops);
  return { isRoute: true, hops: hops.sort((one, other) => one.from_s - other.from_s) };
}

function firstArrivals(recording, event) {
  const arrivals = new Map();
  for (const row of recording.rows(recording.deliveriesOf, event)) {
    const node = recording.delivery.node[row];
    if (!arrivals.has(node)) arrivals.set(node, recording.delivery.t[row]);
  }
  return arrivals;
}

function direct(recording, event, arrivals) {
  const from = recording.event.node[event];
  const from_s = recording.event.t[event];
  return [...arrivals].map(([to, until_s]) => ({ from, to, from_s, until_s, delivers: true, useful: true }));
}

function lastHop(recording, frames, node, t, delivers) {
  const { frame } = recording;
  let best = -1;
  let bestMisfit = Infinity;
  for (const row of frames) {
    const from_s = frame.t[row];
    if (from_s >= t) break;
    const sender = frame.node[row];
    const reaches = frame.peer[row] === node || (frame.peer[row] < 0 && recording.inContact(sender, node, from_s));
    if (sender === node || !reaches) continue;
    const misfit = delivers ? Math.abs(from_s + frame.airtime_s[row] - t) : from_s;
    if (misfit < bestMisfit) [best, bestMisfit] = [row, misfit];
  }
  if (best < 0) return null;
  const until_s = delivers ? t : Math.min(t, frame.t[best] + frame.airtime_s[best]);
  return { from: frame.node[best], to: node, from_s: frame.t[best], until_s, delivers, useful: delivers };
}

// A hop is useful if a delivery hangs on it.
function markUseful(hops) {
  const into = new Map(hops.map((hop) => [hop.to, hop]));
  for (const hop of hops) {
    if (!hop.delivers) continue;
    for (let before = into.get(hop.from); before && !before.useful; before = into.get(before.from)) before.useful = true;
  }
}
