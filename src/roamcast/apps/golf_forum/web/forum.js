// The page of one participant: register, publish, be notified.

import { ask, element, themeButton } from "./parts.js";
import { entered, eventFields, typeButtons, wished, wishFields } from "./forms.js";

const byId = (id) => document.getElementById(id);
const follow = byId("follow");
const report = byId("report");
const device = byId("device");
const followForm = follow.querySelector("form");
const reportForm = report.querySelector("form");
const NOTICES_MAX = 200;

const state = { status: null, wishType: null, eventType: null, notices: new Map(), byHand: false, asked: 0 };

// -- What an event says ----------------------------------------------------------------------------------------------

function headline(notice) {
  const of = notice.values;
  return notice.type === "TAXISHARE" ? `Taxi to the ${of.destination}` : of.player;
}

function sentence(notice) {
  const of = notice.values;
  if (notice.type === "TAXISHARE") {
    return `${of.seats} free ${of.seats === 1 ? "seat" : "seats"}, leaves in ${of.minutes} min${of.remark ? `. “${of.remark}”` : ""}`;
  }
  const strokes = `${of.holescore} ${of.holescore === 1 ? "stroke" : "strokes"}`;
  return `Hole ${of.hole}: ${strokes}, ${of.totalscore} in total, rank ${of.currentrank}${of.remark ? `. “${of.remark}”` : ""}`;
}

function badge(notice) {
  if (notice.type === "TAXISHARE") return element("span", { className: "badge taxi", textContent: "taxi" });
  return notice.official
    ? element("span", { className: "badge official", textContent: "official" })
    : element("span", { className: "badge", textContent: "gallery" });
}

// Which condition was met by which value, for each subscription that the event matches.
function why(match) {
  const conditions = match.reasons.map((reason) =>
    element("div", {}, element("code", { textContent: reason.condition }), element("span", { className: "faded", textContent: "is met by" }),
      element("span", { className: "value", textContent: reason.value === null ? "nothing there" : String(reason.value) })));
  const all = element("div", {}, element("span", { className: "faded", textContent: "every event of this kind" }));
  return [element("div", {}, element("span", { className: "faded", textContent: `Subscription ${match.subscription}:` })),
    ...(conditions.length ? conditions : [all])];
}

function noticeCard(notice, isFresh) {
  const kind = notice.type === "TAXISHARE" ? "taxi" : notice.official ? "official" : "gallery";
  const hops = notice.hops === 1 ? "1 hop" : `${notice.hops} hops`;
  const path = `from node ${notice.from}, ${hops}, ${notice.latency_ms < 10 ? notice.latency_ms.toFixed(1) : Math.round(notice.latency_ms)} ms`;
  return element("article", { className: `notice ${kind}${isFresh ? " fresh" : ""}`, "data-event": notice.event },
    element("div", { className: "top" }, element("b", { textContent: headline(notice) }), badge(notice)),
    element("p", { className: "told", textContent: sentence(notice) }),
    element("div", { className: "why" }, ...notice.matches.flatMap(why)),
    element("p", { className: "path", textContent: path }),
    element("details", {}, element("summary", { textContent: "XML" }), element("code", { textContent: notice.xml })));
}

function showNotice(notice, isFresh) {
  const card = noticeCard(notice, isFresh);
  const known = state.notices.get(notice.event);
  if (known) known.replaceWith(card);
  else byId("notices").prepend(card);
  state.notices.set(notice.event, card);
  if (state.notices.size > NOTICES_MAX) {
    const [oldest, its] = state.notices.entries().next().value;
    its.remove();
    state.notices.delete(oldest);
  }
  countNotices();
}

function countNotices() {
  const count = state.notices.size;
  byId("count").textContent = count ? String(count) : "";
  const empty = byId("notices").querySelector(".empty");
  if (count) empty?.remove();
  else if (!empty) {
    const text = "Nothing yet. Register a subscription: what matches appears here, with the reason.";
    byId("notices").append(element("p", { className: "empty", textContent: text }));
  }
}

// -- The node's messages -------------------------------------------------------------------------------------------

const handlers = {
  status(message) {
    const before = state.status;
    state.status = message;
    byId("name").textContent = message.name;
    byId("role").textContent = message.role;
    document.title = `${message.name} · Golf Forum`;
    byId("broker").checked = message.broker;
    byId("constrained").checked = message.constrained;
    byId("broker").disabled = message.constrained;
    byId("write").hidden = message.constrained;
    if (message.constrained) byHand(false);
    byId("xpath-label").textContent = message.constrained ? "As XPath it would be" : "Subscription in XPath";
    const serves = message.broker ? "this device itself" : message.home === null ? "looking for one…" : `node ${message.home}`;
    const near = message.neighbours.length ? message.neighbours.join(", ") : "none in range";
    const facts = {
      "Node": message.address, "Broker": serves, "Neighbours": near,
      "Sent": `${message.frames_sent} frames, ${(message.bytes_sent / 1000).toFixed(1)} kB`,
    };
    byId("facts").replaceChildren(...Object.entries(facts).flatMap(([name, value]) =>
      [element("dt", { textContent: name }), element("dd", { textContent: value })]));
    if (before === null && state.eventType) eventFields(report.querySelector("[data-fields]"), state.eventType, message.hole);
  },
  subscriptions(message) {
    const rows = message.subscriptions.map((each) =>
      element("div", { className: "subscription", "data-number": each.number },
        element("code", { textContent: each.xpath }),
        element("span", { className: "badge", textContent: `${each.matched} matched`, title: "Events so far" }),
        element("button", {
          type: "button", className: "link", textContent: "Remove", "aria-label": `Remove subscription ${each.number}`,
          onclick: () => attempt(follow, () => ask("unsubscribe", { number: each.number })),
        })));
    const none = element("p", { className: "faded", textContent: "None yet." });
    byId("subscriptions").replaceChildren(...(rows.length ? rows : [none]));
  },
  notice(message) {
    showNotice(message, document.documentElement.hasAttribute("data-ready"));
  },
  published(message) {
    const text = `Published: ${headline(message)}. Handed to ${message.neighbours} ${message.neighbours === 1 ? "neighbour" : "neighbours"}.`;
    byId("published").replaceChildren(element("p", { className: "done", textContent: text }),
      element("details", {}, element("summary", { textContent: "XML" }), element("code", { textContent: message.xml })));
  },
};

function listen() {
  const feed = new EventSource("feed");
  feed.onopen = () => {
    byId("offline").hidden = true;
    state.notices.clear();
    byId("notices").replaceChildren();
    countNotices();
  };
  feed.onerror = () => { byId("offline").hidden = false; };
  feed.onmessage = (event) => {
    const message = JSON.parse(event.data);
    handlers[message.kind]?.(message);
    setTimeout(() => document.documentElement.setAttribute("data-ready", ""), 0);
  };
}

// -- What the user does --------------------------------------------------------------------------------------------

async function attempt(section, action) {
  const mistake = section.querySelector(".mistake");
  mistake.textContent = "";
  try {
    return await action();
  } catch (error) {
    mistake.textContent = error.message;
    return null;
  }
}

async function preview() {
  if (state.byHand) return;
  const number = ++state.asked;
  const answer = await attempt(follow, () => ask("xpath", wished(followForm, state.wishType)));
  if (number === state.asked) byId("xpath").textContent = answer?.xpath ?? "";
}

function byHand(isOn) {
  if (isOn && !state.byHand) byId("by-hand").value = byId("xpath").textContent;
  state.byHand = isOn;
  byId("by-hand").hidden = !isOn;
  byId("xpath").hidden = isOn;
  byId("write").textContent = isOn ? "Use the form" : "Write it by hand";
}

followForm.addEventListener("input", () => { if (!state.byHand) preview(); });
byId("write").addEventListener("click", () => { byHand(!state.byHand); preview(); });
followForm.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = state.byHand ? { type: state.wishType.type, xpath: byId("by-hand").value } : wished(followForm, state.wishType);
  const done = await attempt(follow, () => ask("subscribe", form));
  if (done) {
    followForm.reset();
    byHand(false);
    preview();
  }
});
reportForm.addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("published").replaceChildren();
  await attempt(report, () => ask("publish", { type: state.eventType.type, values: entered(reportForm, state.eventType) }));
});
for (const id of ["broker", "constrained"]) {
  byId(id).addEventListener("change", () => attempt(device, async () => {
    const constrained = byId("constrained").checked;
    try {
      await ask("device", { broker: byId("broker").checked && !constrained, constrained });
    } finally {
      if (state.status) handlers.status(state.status);
    }
  }));
}
for (const button of document.querySelectorAll("nav button")) {
  button.addEventListener("click", () => openTab(button.dataset.tab));
}

function openTab(name) {
  document.body.dataset.tab = name;
  for (const button of document.querySelectorAll("nav button")) {
    button.setAttribute("aria-selected", button.dataset.tab === name);
  }
}

async function start() {
  themeButton(byId("theme"));
  openTab("news");
  countNotices();
  byId("map").hidden = !location.pathname.startsWith("/device/");
  const types = await ask("forms");
  typeButtons(follow.querySelector("[data-types]"), types, (type) => {
    state.wishType = type;
    wishFields(follow.querySelector("[data-fields]"), type);
    follow.querySelector("[data-official]").hidden = type.type !== "PGMFORUM";
    preview();
  });
  typeButtons(report.querySelector("[data-types]"), types, (type) => {
    state.eventType = type;
    eventFields(report.querySelector("[data-fields]"), type, state.status?.hole ?? null);
  });
  listen();
}

start();
