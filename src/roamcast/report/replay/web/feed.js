// The panel of events: those around the current time, newest first; a click tells the event's story.

import { dot, make, milliseconds } from "replay/elements.js";
import { after } from "replay/recording.js";

const BEFORE = 60;
const AHEAD = 3;

export class Feed {
  constructor(panel, app) {
    Object.assign(this, { panel, app, shown: "" });
  }

  // Only if something changed: the page asks on every frame.
  update(t) {
    const { recording, selection } = this.app;
    const newest = after(recording.event.t, t) - 1;
    const state = `${newest} ${selection?.event ?? ""} ${this.app.palette.isLight}`;
    if (state === this.shown || this.panel.hidden) return;
    this.shown = state;
    const first = Math.max(0, newest - BEFORE);
    const last = Math.min(recording.events - 1, newest + AHEAD);
    const rows = [];
    for (let event = last; event >= first; event -= 1) rows.push(eventRow(this.app, event, event > newest));
    const nothing = make("p", { class: "faded" }, "No event was published in this run.");
    this.panel.replaceChildren(...(rows.length ? rows : [nothing]));
  }
}

// A line about an event; `since_s` gives its time as a delay after that instant.
export function eventRow(app, event, later = false, since_s = null) {
  const { recording, palette, selection } = app;
  const { delivered, expected } = recording.reach(event);
  const what = `${recording.eventName(event)}  ${recording.content(event)}`;
  const current = selection?.kind === "event" && selection.event === event;
  return make("button", {
    type: "button", class: later ? "row later" : "row", "data-event": event, title: what,
    "aria-current": current ? "true" : null, onclick: () => app.select({ kind: "event", event }),
  },
  ...(since_s === null
    ? [time(`${recording.event.t[event].toFixed(2)} s`), make("span", { class: "what" }, dot(palette.hue(event)), " ", what)]
    : [dot(palette.hue(event)), make("span", { class: "what" }, what), time(`+${milliseconds(recording.event.t[event] - since_s)}`)]),
  shareOf(delivered, expected));
}

function time(text) {
  return make("span", { class: "time" }, text);
}

export function shareOf(delivered, expected) {
  const bar = expected
    ? make("i", {}, make("b", { style: { width: `${(100 * delivered) / expected}%` } }))
    : make("i", { class: "none" });
  return make("span", { class: "share" }, bar, `${delivered}/${expected}`);
}
