// The course map: where everyone is, who is in range, and how events travel. Live from the nodes, or a recorded story.
//
// The story is a list of messages in the order of time (story.py describes them). What is shown at a time follows from
// the messages up to it, so the slider goes back and forth in a live story too.

const LIVE_DELAY_S = 0.4; // behind the newest message, so that there is a next place to move toward
const TRAVEL_S = 0.45; // how long a hop is shown
const FLASH_S = 1.3; // how long a delivery is
const ROLES = { announcer: "official", gallery: "visitor", player: "player" };

const byId = (id) => document.getElementById(id);
const state = {
  course: null, places: [], marks: [], events: new Map(), order: [], homes: [], devices: [],
  t: 0, last: 0, lastAt: 0, isPlaying: true, isLive: false, chosen: null, shownAt: null, colours: {},
};

// -- The story -----------------------------------------------------------------------------------------------------

const take = {
  story: (message) => message.messages.forEach(receive),
  course(message) {
    Object.assign(state, { course: message, places: [], marks: [], events: new Map(), order: [], homes: [], devices: [], last: 0 });
    describe();
  },
  places: (message) => state.places.push(message),
  published(message) {
    const event = { ...message, got: [], heard: 0 };
    state.events.set(message.event, event);
    state.order.push(event);
    state.marks.push(message);
  },
  heard(message) {
    const event = state.events.get(message.event);
    if (event) event.heard += 1;
    state.marks.push(message);
  },
  delivered(message) {
    state.events.get(message.event)?.got.push(message);
    state.marks.push(message);
  },
  home: (message) => state.homes.push(message),
  device: (message) => state.devices.push(message),
};

function receive(message) {
  take[message.kind]?.(message);
  if (message.t !== undefined && message.t > state.last) {
    state.last = message.t;
    state.lastAt = performance.now();
  }
}

function describe() {
  const course = state.course;
  const isLive = course.mode === "live" && !byId("story");
  byId("mode").textContent = course.mode === "live" ? (isLive ? "live nodes" : "recorded from live nodes") : "simulated";
  const devices = course.people.filter((person) => person.device).length;
  const faster = course.pace === 1 ? "" : `, everyone ${course.pace}× as fast as in life`;
  byId("about").textContent = `${devices} devices over ODMRP, range ${course.range_m} m${faster}`;
  const pages = isLive ? course.people.filter((person) => person.page) : [];
  byId("pages").hidden = pages.length === 0;
  byId("devices").replaceChildren(...pages.map((person) => {
    const link = document.createElement("a");
    link.href = person.page;
    link.textContent = person.name;
    return link;
  }));
  const legend = [["official", "official"], ["broker", "visitor, a broker"], ["client", "client of a broker"],
    ["constrained", "constrained client"], ["player", "player"], ["moving", "event on its way"]];
  byId("legend").replaceChildren(...legend.map(([kind, text]) => {
    const entry = document.createElement("span");
    const mark = document.createElement("i");
    mark.className = kind;
    entry.append(mark, text);
    return entry;
  }));
}

// The last place in a list sorted by time that is not after `t`; -1 if there is none.
function before(list, t) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].t <= t) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function placesAt(t) {
  const at = Math.max(0, before(state.places, t));
  const [one, two] = [state.places[at], state.places[at + 1]];
  if (!one) return [];
  if (!two || t <= one.t) return one.at;
  const share = (t - one.t) / (two.t - one.t);
  return one.at.map(([x, y], person) => [x + share * (two.at[person][0] - x), y + share * (two.at[person][1] - y)]);
}

function latest(list, t, key) {
  const found = new Map();
  for (let at = 0; at <= before(list, t); at += 1) found.set(list[at].node, list[at][key]);
  return found;
}

// -- The picture ---------------------------------------------------------------------------------------------------

const canvas = byId("map");
const pen = canvas.getContext("2d");

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["rough", "fairway", "green", "tee", "link", "node", "edge", "ink", "faded", "accent", "official", "taxi", "panel", "bad"]) {
    state.colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  state.colours.flights = style.getPropertyValue("--flights").trim().split(/\s+/);
}

function view() {
  const box = canvas.getBoundingClientRect();
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(box.width * scale) || canvas.height !== Math.round(box.height * scale)) {
    canvas.width = Math.round(box.width * scale);
    canvas.height = Math.round(box.height * scale);
  }
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, box.width, box.height);
  const [width, height] = state.course.area_m;
  const below = 34; // room for the legend
  const zoom = Math.min((box.width - 20) / width, (box.height - below - 12) / height);
  const [left, top] = [(box.width - zoom * width) / 2, (box.height - below - zoom * height) / 2 + 4];
  return { zoom, at: ([x, y]) => [left + zoom * x, top + zoom * (height - y)] };
}

function disc(point, radius, fill, stroke, width = 2) {
  pen.beginPath();
  pen.arc(point[0], point[1], radius, 0, 2 * Math.PI);
  if (fill) { pen.fillStyle = fill; pen.fill(); }
  if (stroke) { pen.strokeStyle = stroke; pen.lineWidth = width; pen.stroke(); }
}

function line(one, two, colour, width, dash = []) {
  pen.beginPath();
  pen.setLineDash(dash);
  pen.moveTo(...one);
  pen.lineTo(...two);
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.stroke();
  pen.setLineDash([]);
}

function drawHoles({ at, zoom }) {
  const colours = state.colours;
  pen.lineCap = "round";
  for (const hole of state.course.holes) {
    line(at(hole.tee), at(hole.green), colours.fairway, Math.max(8, 34 * zoom));
    disc(at(hole.green), Math.max(6, 22 * zoom), colours.green);
    disc(at(hole.tee), Math.max(2, 5 * zoom), colours.tee);
  }
}

function drawLinks(places, { at }) {
  const people = state.course.people.filter((person) => person.device);
  pen.globalAlpha = 0.22;
  for (const one of people) {
    for (const two of people) {
      if (one.number >= two.number) continue;
      const [[x, y], [u, v]] = [places[one.number], places[two.number]];
      if (Math.hypot(x - u, y - v) <= state.course.range_m) line(at([x, y]), at([u, v]), state.colours.link, 1);
    }
  }
  pen.globalAlpha = 1;
}

function drawHomes(places, { at }, t) {
  for (const [node, broker] of latest(state.homes, t, "broker")) {
    if (broker !== null && places[broker]) line(at(places[node]), at(places[broker]), state.colours.accent, 1.5, [4, 4]);
  }
}

function drawPeople(places, { at, zoom }, t) {
  const colours = state.colours;
  const devices = latest(state.devices, t, "device");
  const size = Math.min(9, Math.max(5, 11 * zoom));
  pen.font = `600 ${Math.max(10, Math.min(13, 15 * zoom))}px system-ui, sans-serif`;
  pen.textAlign = "center";
  for (const person of state.course.people) {
    const point = at(places[person.number]);
    if (person.role === "announcer") {
      pen.fillStyle = colours.official;
      pen.beginPath();
      pen.roundRect(point[0] - size - 1, point[1] - size - 1, 2 * size + 2, 2 * size + 2, 4);
      pen.fill();
      pen.fillStyle = colours.edge;
      pen.textBaseline = "middle";
      pen.fillText(person.hole, point[0], point[1] + 0.5);
      continue;
    }
    const colour = colours.flights[person.flight % colours.flights.length];
    if (person.role === "player") {
      disc(point, size * 0.55, colours.ink, colours.edge, 1.5);
      continue;
    }
    const device = devices.get(person.number) ?? person.device;
    if (device === "broker") disc(point, size, colour, colours.edge, 1.5);
    else {
      pen.lineCap = "butt";
      if (device === "constrained") pen.setLineDash([2.5, 2.5]);
      disc(point, size - 1, colours.panel, colour, 3);
      pen.setLineDash([]);
    }
    if (zoom > 0.65) {
      pen.textBaseline = "bottom";
      pen.fillStyle = colours.ink;
      pen.fillText(person.name, point[0], point[1] - size - 2);
    }
  }
}

function colourOf(event) {
  return event?.type === "TAXISHARE" ? state.colours.taxi : event?.official ? state.colours.official : state.colours.accent;
}

// The tree that a chosen event has taken so far, and who got it.
function drawTree(places, { at }, t) {
  const event = state.events.get(state.chosen);
  if (!event) return;
  for (const mark of state.marks) {
    if (mark.event === state.chosen && mark.kind === "heard" && mark.t <= t && places[mark.sender]) {
      line(at(places[mark.sender]), at(places[mark.receiver]), colourOf(event), 2);
    }
  }
  for (const got of event.got) {
    if (got.t <= t) disc(at(places[got.node]), 13, null, colourOf(event), 3);
  }
}

// What has just happened: hops as moving dots, publications and deliveries as rings.
function drawMoving(places, { at }, t) {
  for (let number = before(state.marks, t); number >= 0; number -= 1) {
    const mark = state.marks[number];
    const age = t - mark.t;
    if (age > FLASH_S) break;
    const colour = colourOf(state.events.get(mark.event));
    if (mark.kind === "heard" && age < TRAVEL_S && places[mark.sender]) {
      const [from, to] = [at(places[mark.sender]), at(places[mark.receiver])];
      const share = age / TRAVEL_S;
      disc([from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])], 4.5, colour, state.colours.edge, 1);
    } else if (mark.kind !== "heard") {
      pen.globalAlpha = 1 - age / FLASH_S;
      disc(at(places[mark.node]), 10 + 16 * (age / FLASH_S), null, colour, mark.kind === "published" ? 5 : 3);
      pen.globalAlpha = 1;
    }
  }
}

// -- The lists -----------------------------------------------------------------------------------------------------

function showLists(t) {
  const count = before(state.order, t) + 1;
  const happened = before(state.marks, t); // the lists change with what has happened by now, and with nothing else
  if (happened === state.shownAt) return;
  state.shownAt = happened;
  const events = state.order.slice(0, count);
  showBoard(events);
  const got = events.reduce((sum, event) => sum + event.got.filter((each) => each.t <= t).length, 0);
  byId("count").textContent = `${count} published, ${got} delivered`;
  byId("events").replaceChildren(...events.slice(-60).reverse().flatMap((event) => eventRow(event, t)));
}

function cell(name, text, className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function eventRow(event, t) {
  const of = event.values;
  const what = event.type === "TAXISHARE" ? `taxi to the ${of.destination}, ${of.seats} seats` : `${of.player}, hole ${of.hole}: ${of.holescore}`;
  const got = event.got.filter((each) => each.t <= t);
  const row = cell("button", "", "event");
  row.type = "button";
  row.dataset.event = event.event;
  row.setAttribute("aria-pressed", state.chosen === event.event);
  row.append(cell("span", `${event.t.toFixed(1)} s`, "time"), cell("span", what), cell("span", `→ ${got.length}`, "got"));
  row.addEventListener("click", () => {
    state.chosen = state.chosen === event.event ? null : event.event;
    state.shownAt = null;
  });
  if (state.chosen !== event.event) return [row];
  const reasons = cell("div", "", "reasons");
  const source = state.course.people[event.node];
  reasons.append(cell("span", `by ${source.name} (${ROLES[source.role]}), heard by ${event.heard} devices`, "faded"));
  for (const each of got) {
    const met = each.matches.flatMap((match) => match.reasons.map((reason) => reason.condition)).join(", ") || "every event";
    const entry = cell("span", "");
    entry.append(cell("b", state.course.people[each.node].name), ` ${each.hops} ${each.hops === 1 ? "hop" : "hops"}, ${Math.round(each.latency_ms)} ms: `, cell("code", met));
    reasons.append(entry);
  }
  return [row, reasons];
}

function showBoard(events) {
  const rows = new Map();
  for (const { type, values } of events) if (type === "PGMFORUM") rows.set(values.player, values);
  const sorted = [...rows.values()].sort((a, b) => a.currentrank - b.currentrank || a.totalscore - b.totalscore).slice(0, 8);
  const table = document.createElement("table");
  const head = document.createElement("tr");
  head.append(...["rank", "player", "hole", "strokes", "total"].map((text) => cell("th", text)));
  table.append(head);
  for (const of of sorted) {
    const row = document.createElement("tr");
    row.append(...[of.currentrank, of.player, of.hole, of.holescore, of.totalscore].map((text) => cell("td", String(text))));
    table.append(row);
  }
  byId("board").replaceChildren(sorted.length ? table : cell("p", "No results yet.", "faded"));
}

// -- Time ----------------------------------------------------------------------------------------------------------

const ICONS = {
  play: "M4 2.5v11L13.5 8z",
  pause: "M4 2.5h3v11H4zM9 2.5h3v11H9z",
};

function showControls() {
  const icon = `<svg viewBox="0 0 16 16" width="16" height="16" fill="currentColor" aria-hidden="true"><path d="${state.isPlaying ? ICONS.pause : ICONS.play}"/></svg>`;
  if (byId("play").dataset.icon !== String(state.isPlaying)) {
    byId("play").innerHTML = icon;
    byId("play").dataset.icon = String(state.isPlaying);
  }
  byId("live").setAttribute("aria-pressed", state.isLive);
  byId("clock").textContent = `${state.t.toFixed(0)} s`;
  if (document.activeElement !== byId("slider") || state.isPlaying) {
    byId("slider").value = state.last ? Math.round(1000 * state.t / state.last) : 0;
  }
}

let previous = performance.now();
function tick(now) {
  const elapsed = Math.min(0.2, (now - previous) / 1000);
  previous = now;
  if (state.course && state.places.length) {
    if (state.isLive) state.t = Math.max(0, Math.min(state.last, state.last - LIVE_DELAY_S + (now - state.lastAt) / 1000));
    else if (state.isPlaying) {
      state.t = Math.min(state.last, state.t + elapsed);
      if (state.t >= state.last && byId("live").hidden) state.isPlaying = false;
    }
    draw();
  }
  requestAnimationFrame(tick);
}

function draw() {
  const drawn = view();
  const places = placesAt(state.t);
  if (!places.length) return;
  drawHoles(drawn);
  drawLinks(places, drawn);
  drawHomes(places, drawn, state.t);
  drawTree(places, drawn, state.t);
  drawPeople(places, drawn, state.t);
  drawMoving(places, drawn, state.t);
  showLists(state.t);
  showControls();
}

byId("slider").addEventListener("input", () => {
  state.isLive = false;
  state.isPlaying = false;
  state.t = state.last * Number(byId("slider").value) / 1000;
});
byId("play").addEventListener("click", () => {
  if (state.isLive || state.isPlaying) state.isLive = state.isPlaying = false;
  else {
    state.isPlaying = true;
    if (state.t >= state.last) state.t = 0;
  }
});
byId("live").addEventListener("click", () => {
  state.isLive = state.isPlaying = true;
});
byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  readColours();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColours);

// -- Start ---------------------------------------------------------------------------------------------------------

readColours();
const recorded = byId("story");
if (recorded) {
  JSON.parse(recorded.textContent).forEach(receive);
  state.isPlaying = !matchMedia("(prefers-reduced-motion: reduce)").matches;
} else {
  byId("live").hidden = false;
  state.isLive = true;
  new EventSource("/feed").onmessage = (message) => receive(JSON.parse(message.data));
}
document.documentElement.setAttribute("data-ready", "");
window.course = state;
requestAnimationFrame(tick);
