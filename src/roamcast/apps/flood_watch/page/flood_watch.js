// The page of one team: a map with the depths in its box, and what its broker does for it.
// Messages come from the node (/news), or from a recording inside the page.

const $ = (id) => document.getElementById(id);
const RAMP = [[0, [191, 227, 255]], [0.15, [92, 179, 245]], [0.4, [21, 112, 201]], [0.7, [18, 58, 140]], [1, [58, 19, 102]]];
const SHALLOW_MM = 50, DEEP_MM = 3000, HANDLE_CELLS = 3.5;

const known = { land: null, state: null, depths: null, map: { vehicles: {}, team: null } };
let drag = null;      // what is being dragged: { corner, from, box }
let wanted = null;    // the box as the user has just drawn it, until the node confirms it
let landImage = null;

// -- Drawing -----------------------------------------------------------------------------------------------------

function colour(mm) {
  const share = Math.min(1, Math.log(mm / SHALLOW_MM) / Math.log(DEEP_MM / SHALLOW_MM));
  for (let at = 1; at < RAMP.length; at++) {
    const [low, from] = RAMP[at - 1], [high, to] = RAMP[at];
    if (share <= high) return from.map((part, i) => part + (to[i] - part) * (share - low) / (high - low));
  }
  return RAMP.at(-1)[1];
}

function shaded(land) {
  // Heights as greens and browns, lit from the north-west.
  const { size, dm } = land, image = new ImageData(size, size), highest = Math.max(...dm);
  for (let y = 0; y < size; y++) for (let x = 0; x < size; x++) {
    const at = (dx, dy) => dm[Math.min(size - 1, Math.max(0, y + dy)) * size + Math.min(size - 1, Math.max(0, x + dx))];
    const slope = (at(1, 0) - at(-1, 0)) + (at(0, 1) - at(0, -1));
    const light = Math.max(0.62, Math.min(1.22, 1 + slope / 420));
    const up = at(0, 0) / highest;
    const tint = up < 0.5 ? [176 + 90 * up, 196 + 20 * up, 150 + 40 * up] : [221 - 60 * (up - 0.5), 206 - 90 * (up - 0.5), 170 - 70 * (up - 0.5)];
    image.data.set([...tint.map((part) => Math.min(255, part * light)), 255], 4 * (y * size + x));
  }
  const canvas = new OffscreenCanvas(size, size);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function flooded(depths) {
  const [left, top, right, bottom] = depths.box, width = right - left, height = bottom - top;
  const image = new ImageData(width, height);
  depths.mm.forEach((mm, at) => {
    if (mm >= SHALLOW_MM / 5) image.data.set([...colour(Math.max(mm, SHALLOW_MM)), mm < SHALLOW_MM ? 70 : 225], 4 * at);
  });
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function draw() {
  const canvas = $("map"), pen = canvas.getContext("2d");
  if (!known.land) return;
  const scale = canvas.width / known.land.size;
  landImage ??= shaded(known.land);
  pen.imageSmoothingEnabled = true;
  pen.drawImage(landImage, 0, 0, canvas.width, canvas.height);
  const box = shownBox();
  pen.fillStyle = "rgb(10 18 26 / 32%)";
  const [left, top, right, bottom] = box.map((edge) => edge * scale);
  pen.beginPath();
  pen.rect(0, 0, canvas.width, canvas.height);
  pen.rect(left, top, right - left, bottom - top);
  pen.fill("evenodd");
  if (known.depths) {
    pen.imageSmoothingEnabled = false;
    const [l, t, r, b] = known.depths.box.map((edge) => edge * scale);
    pen.drawImage(flooded(known.depths), l, t, r - l, b - t);
    drawDeepest(pen, scale);
  }
  pen.lineWidth = 3;
  pen.strokeStyle = alarmed() ? "#ff5546" : "#ffffff";
  pen.strokeRect(left, top, right - left, bottom - top);
  pen.fillStyle = pen.strokeStyle;
  for (const x of [left, right]) for (const y of [top, bottom]) pen.fillRect(x - 8, y - 8, 16, 16);
  drawPlaces(pen, canvas.width / known.land.area_m, canvas.height);
}

function drawDeepest(pen, scale) {
  const { deepest, deepest_m } = known.depths;
  if (!known.state || deepest_m <= known.state.level_m) return;
  pen.strokeStyle = "#ff5546";
  pen.lineWidth = 4;
  pen.beginPath();
  pen.arc((deepest[0] + 0.5) * scale, (deepest[1] + 0.5) * scale, 18, 0, 7);
  pen.stroke();
}

function drawPlaces(pen, perMetre, height) {
  const spot = ([x, y]) => [x * perMetre, height - y * perMetre];
  const { vehicles, team } = known.map, home = vehicles[known.state?.broker];
  if (team && home) {
    pen.strokeStyle = "rgb(255 255 255 / 85%)";
    pen.setLineDash([10, 8]);
    pen.lineWidth = 3;
    pen.beginPath();
    pen.moveTo(...spot(team));
    pen.lineTo(...spot([home.x_m, home.y_m]));
    pen.stroke();
    pen.setLineDash([]);
  }
  pen.font = "600 24px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (const [address, place] of Object.entries(vehicles)) {
    mark(pen, spot([place.x_m, place.y_m]), address, Number(address) === known.state?.broker ? "#0b6bcb" : "#2b3946", 22);
  }
  if (team) mark(pen, spot(team), "you", "#c0362c", 30);
}

function mark(pen, [x, y], text, fill, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 7);
  pen.fillStyle = fill;
  pen.fill();
  pen.lineWidth = 3;
  pen.strokeStyle = "#ffffff";
  pen.stroke();
  pen.fillStyle = "#ffffff";
  pen.fillText(text, x, y + 1);
}

// -- Numbers -----------------------------------------------------------------------------------------------------

const alarmed = () => known.state?.alarms.some((alarm) => !alarm.is_over) ?? false;
const shownBox = () => wanted ?? known.state?.box ?? [0, 0, 1, 1];
const clock = (time_s) => new Date(time_s * 1000).toLocaleTimeString([], { hour12: false });
const brokerName = (address) => (address < 0 ? "no broker yet" : known.map.vehicles[address]?.name || `vehicle ${address}`);

function amount(bytes) {
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function listed(id, rows, empty) {
  const items = rows.map(([one, other, mark]) => {
    const item = document.createElement("li");
    item.className = mark ?? "";
    for (const text of [one, other]) item.append(Object.assign(document.createElement("span"), { textContent: text }));
    return item;
  });
  $(id).replaceChildren(...(items.length ? items : [Object.assign(document.createElement("li"), { textContent: empty })]));
}

function tell() {
  const { state, depths } = known;
  if (!state) return;
  $("team").textContent = `${state.name} · node ${state.address}`;
  document.title = `${alarmed() ? "(!) " : ""}Flood Watch · ${state.name}`;
  const status = $("status");
  status.className = `pill ${alarmed() ? "alarm" : "calm"}`;
  status.textContent = state.refusal ? "refused" : alarmed() ? "Alarm" : state.received ? "Calm" : "waiting for data";
  $("deepest").textContent = depths ? `${depths.deepest_m.toFixed(2)} m` : "–";
  $("where").textContent = depths ? `at column ${depths.deepest[0]}, row ${depths.deepest[1]}` : "";
  $("broker").textContent = brokerName(state.broker);
  $("since").textContent = state.homes.length ? `since ${clock(state.homes.at(-1)[0])}` : "";
  $("latency").textContent = state.latency_ms.length ? `${state.latency_ms.at(-1).toFixed(0)} ms` : "–";
  const highest = Math.max(1, ...state.latency_ms);
  $("spark").firstElementChild.setAttribute("points", state.latency_ms.map((ms, i) => `${i * 120 / 29},${27 - 26 * ms / highest}`).join(" "));
  const share = state.taken_bytes ? 1 - state.received_bytes / state.taken_bytes : 0;
  $("saved").textContent = state.taken_bytes ? `${(100 * share).toFixed(0)} %` : "–";
  $("bytes").textContent = state.taken_bytes ? `${amount(state.received_bytes)} instead of ${amount(state.taken_bytes)}` : "";
  if (document.activeElement !== $("level")) $("level").value = state.level_m;
  listed("alarms", state.alarms.toReversed().map((alarm) =>
    [`${alarm.depth_m.toFixed(2)} m at ${alarm.cell.join(", ")}`, `${clock(alarm.time_s)}${alarm.is_over ? "" : " · now"}`, alarm.is_over ? "" : "now"]),
    "No water above the level so far.");
  listed("homes", state.homes.toReversed().map(([time_s, broker]) => [brokerName(broker), clock(time_s)]), "None yet.");
  complain(state.refusal);
}

function complain(text) {
  $("mistake").hidden = !text;
  $("mistake").textContent = text;
}

function take(message) {
  if (message.kind === "state" && wanted && String(message.box) === String(wanted)) wanted = null;
  known[message.kind] = message;
}

function show() {
  tell();
  draw();
  document.documentElement.dataset.ready = known.state ? "yes" : "";
}

// -- The box -----------------------------------------------------------------------------------------------------

function cellAt(event) {
  const bounds = $("map").getBoundingClientRect(), size = known.land.size;
  return [(event.clientX - bounds.left) / bounds.width * size, (event.clientY - bounds.top) / bounds.height * size];
}

function moved(box, corner, dx, dy) {
  const size = known.land.size, [left, top, right, bottom] = box, clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  if (!corner) {
    const x = clamp(Math.round(dx), -left, size - right), y = clamp(Math.round(dy), -top, size - bottom);
    return [left + x, top + y, right + x, bottom + y];
  }
  const [atRight, atBottom] = corner;
  return [
    atRight ? left : clamp(Math.round(left + dx), 0, right - 5),
    atBottom ? top : clamp(Math.round(top + dy), 0, bottom - 5),
    atRight ? clamp(Math.round(right + dx), left + 5, size) : right,
    atBottom ? clamp(Math.round(bottom + dy), top + 5, size) : bottom,
  ];
}

async function post(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  complain(answer.ok ? "" : (await answer.json()).error);
  return answer.ok;
}

async function watch(box) {
  wanted = box;
  draw();
  if (!await post("/box", { box })) wanted = null;
}

function enableBox() {
  const canvas = $("map");
  canvas.addEventListener("pointerdown", (event) => {
    const [x, y] = cellAt(event), box = shownBox(), [left, top, right, bottom] = box;
    for (const [cx, atRight] of [[left, false], [right, true]]) for (const [cy, atBottom] of [[top, false], [bottom, true]]) {
      if (Math.hypot(x - cx, y - cy) < HANDLE_CELLS) drag = { corner: [atRight, atBottom], from: [x, y], box };
    }
    if (!drag && x >= left && x <= right && y >= top && y <= bottom) drag = { corner: null, from: [x, y], box };
    if (drag) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const [x, y] = cellAt(event);
    wanted = moved(drag.box, drag.corner, x - drag.from[0], y - drag.from[1]);
    draw();
  });
  canvas.addEventListener("pointerup", () => {
    if (drag && wanted && String(wanted) !== String(drag.box)) watch(wanted);
    drag = null;
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    watch(moved(shownBox(), event.shiftKey ? [true, true] : null, ...step));
  });
  $("level-form").addEventListener("submit", (event) => {
    event.preventDefault();
    $("level").blur();
    post("/level", { level_m: Number($("level").value) });
  });
}

// -- Where messages come from ------------------------------------------------------------------------------------

function listen() {
  enableBox();
  const news = new EventSource("/news");
  news.onmessage = (event) => {
    take(JSON.parse(event.data));
    show();
  };
  news.onerror = () => { $("status").className = "pill"; $("status").textContent = "the node does not answer"; };
}

function play(recording) {
  const last = recording.at(-1)[0];
  let at = 0, time = 0, before = null, running = true;
  $("player").hidden = false;
  document.querySelector(".hint").textContent = "A recording: the box is where the team moved it.";
  $("level-form").hidden = true;
  $("seek").max = last;
  const go = (to) => {
    if (to < time) { at = 0; known.depths = null; }
    time = to;
    while (at < recording.length && recording[at][0] <= time) take(recording[at++][1]);
    $("seek").value = time;
    $("clock").textContent = `${time.toFixed(0)} s`;
    show();
  };
  $("seek").addEventListener("input", () => { running = false; $("play").textContent = "Play"; go(Number($("seek").value)); });
  $("play").addEventListener("click", () => {
    running = !running;
    $("play").textContent = running ? "Pause" : "Play";
    if (running && time >= last) go(0);
  });
  const tick = (now) => {
    if (running && before !== null) {
      if (time >= last) { running = false; $("play").textContent = "Play"; }
      else go(Math.min(last, time + (now - before) / 1000));
    }
    before = now;
    requestAnimationFrame(tick);
  };
  go(Math.min(last, 1));
  requestAnimationFrame(tick);
}

const recording = $("recording");
window.floodWatch = { known, draw };
if (recording) play(JSON.parse(recording.textContent));
else listen();
