// The page as a whole: time, selection, and what the user does about them.
//
// All state is here: `t`, `speed`, `playing`, `selection`, `layers`. Panels and canvases are told to show it; every frame
// is drawn from the state alone, so any instant looks the same however one got there.

import { plural } from "replay/elements.js";
import { Feed } from "replay/feed.js";
import { Legend } from "replay/legend.js";
import { Moment } from "replay/moment.js";
import { Palette } from "replay/palette.js";
import { after, unpack } from "replay/recording.js";
import { Scene } from "replay/scene.js";
import { faster, slower, slowMotion } from "replay/speeds.js";
import { Stories } from "replay/stories.js";
import { aspectsOf } from "replay/structure.js";
import { Timeline } from "replay/timeline.js";
import { View } from "replay/view.js";
import { connect } from "replay/controls.js";

const GLOW_S = 0.9; // of watching: how long what happened stays visible
const GLOW_MAX_S = 2; // of recorded time, so that fast playing does not pile everything up
const FOLLOW_S = 7; // of watching: how long the chosen event's journey takes in slow motion
const LEAD = 0.08; // of its journey: how much earlier the slow motion begins
const FRAME_S_MAX = 0.1; // a page that was asleep does not jump
const ASK_MS = 2000; // how often the page of a network that runs asks for what is new
const BEHIND_S = 3; // how far behind the newest it plays, so that it need not wait

export async function start() {
  const app = new App(await unpack(document.getElementById("recording").textContent));
  connect(app);
  app.run();
  if (!window.matchMedia("(prefers-reduced-motion: reduce)").matches) app.play();
  window.replay = app; // for the console, and for tests
  if (document.documentElement.dataset.live) watch(app);
  document.documentElement.dataset.ready = "true";
}

// A network that still runs: the recording grows, and the page follows its end unless the user looks at something else.
async function watch(app) {
  app.seek(app.recording.duration - BEHIND_S);
  app.play();
  while (!app.recording.header.is_over) {
    await new Promise((resume) => setTimeout(resume, ASK_MS));
    try {
      const answer = await fetch("/recording");
      if (!answer.ok) break;
      app.renew(await unpack(await answer.text()));
    } catch {
      break; // the server is gone: keep what has arrived
    }
  }
}

class App {
  constructor(recording) {
    const light = window.matchMedia("(prefers-color-scheme: light)").matches;
    document.documentElement.dataset.theme = light ? "light" : "dark";
    this.palette = new Palette();
    this.t = 0;
    this.speed = 1;
    this.playing = false;
    this.selection = null;
    this.hover = -1;
    this.held = false; // while a panel is pressed it must not change under the finger
    this.layers = { links: true, publishers: true, names: true, deliveries: true, frames: recording.header.has_raw_frames };
    this.view = new View(document.getElementById("network"), recording.header.bounds_m);
    this.#take(recording);
  }

  // A longer recording of the same run. Who looked at its end goes on doing so.
  renew(recording) {
    const before = this.recording;
    const atEnd = this.t >= before.duration - 2 * BEHIND_S;
    const isSame = before.header.nodes.join() === recording.header.nodes.join();
    if (!isSame) this.selection = null; // nodes have other places in the list now
    if (String(before.header.bounds_m) !== String(recording.header.bounds_m)) {
      this.view = new View(document.getElementById("network"), recording.header.bounds_m);
    }
    this.hover = -1;
    this.#take(recording);
    if (atEnd && !recording.header.is_over) {
      if (this.t < recording.duration - 2 * BEHIND_S) this.seek(recording.duration - BEHIND_S);
      this.playing = true;
    }
    this.stale = true;
  }

  #take(recording) {
    this.recording = recording;
    this.aspects = aspectsOf(recording);
    this.moment = new Moment(recording, this.aspects);
    recording.header.labels.forEach(({ category }, number) => {
      this.layers[`frame:${number}`] ??= category !== "link"; // acknowledgements and the like only on demand
    });
    for (const { name, isShownAtFirst } of this.aspects) this.layers[`aspect:${name}`] ??= isShownAtFirst;
    this.scene = new Scene(this.view, recording, this.moment, this.aspects, this.palette);
    this.timeline = new Timeline(document.getElementById("timeline"), recording, this.palette);
    this.legend = new Legend(document.getElementById("layers"), this);
    this.feed = new Feed(document.getElementById("events"), this);
    this.stories = new Stories(document.getElementById("story"), this);
    this.#entitle();
  }

  // -- time --------------------------------------------------------------------------------------------------------

  run() {
    let before = performance.now();
    const step = (now) => {
      const passed_s = Math.min(FRAME_S_MAX, (now - before) / 1000);
      before = now;
      if (this.playing) this.seek(this.t + passed_s * this.speed);
      if (this.playing && this.t >= this.recording.duration) this.pause();
      if (this.stale) this.draw();
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  seek(t) {
    this.t = Math.min(this.recording.duration, Math.max(0, t));
    this.stale = true;
  }

  play() {
    if (this.t >= this.recording.duration) this.seek(0);
    this.playing = true;
    this.stale = true;
  }

  pause() {
    this.playing = false;
    this.stale = true;
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  pace(speed) {
    this.speed = speed;
    this.stale = true;
  }

  // The next speed up or down.
  hurry(direction) {
    this.pace(direction > 0 ? faster(this.speed) : slower(this.speed));
  }

  // To the next or previous publication after or before the chosen event, or else the current time.
  step(direction) {
    const { event } = this.recording;
    const chosen = this.selection?.kind === "event" ? this.selection.event : null;
    const before = after(event.t, this.t) - 1;
    const next = chosen === null ? (direction > 0 ? before + 1 : before) : chosen + direction;
    if (next < 0 || next >= this.recording.events) return;
    this.select({ kind: "event", event: next });
    this.seek(event.t[next]);
  }

  // Plays the journey of an event, and of its causal chain, so slowly that it can be watched.
  follow(event) {
    const { recording } = this;
    const from_s = recording.event.t[event];
    const ends = this.scene.traffic.chain(event).flatMap((each) => this.scene.traffic.journey(each).hops).map((hop) => hop.until_s);
    const length_s = ends.reduce((most, end) => Math.max(most, end - from_s), 1e-3);
    this.select({ kind: "event", event });
    this.pace(slowMotion(length_s, FOLLOW_S));
    this.seek(from_s - length_s * LEAD);
    this.play();
  }

  // -- what is shown -----------------------------------------------------------------------------------------------

  select(selection) {
    this.selection = selection;
    if (selection) this.open("story");
    this.stale = true;
  }

  show(layer, isShown) {
    this.layers[layer] = isShown;
    this.stale = true;
  }

  open(panel) {
    for (const tab of document.querySelectorAll("[role=tab]")) {
      const isOpen = tab.dataset.panel === panel;
      tab.setAttribute("aria-selected", String(isOpen));
      document.getElementById(tab.dataset.panel).hidden = !isOpen;
    }
    this.stale = true;
  }

  theme() {
    const root = document.documentElement;
    root.dataset.theme = root.dataset.theme === "light" ? "dark" : "light";
    this.palette.read();
    this.legend.render();
    this.stale = true;
  }

  draw() {
    this.stale = false;
    const glow_s = Math.min(GLOW_MAX_S, GLOW_S * this.speed);
    const { t, layers, selection, hover } = this;
    this.scene.draw({ t, glow_s, layers, selection, hover });
    this.timeline.draw(t, selection);
    if (!this.held) {
      this.feed.update(t);
      this.stories.update(t);
    }
    this.controls?.update();
  }

  // Where a node stands on the canvas, in pixels.
  place(node) {
    return { x: this.scene.at[2 * node], y: this.scene.at[2 * node + 1] };
  }

  #entitle() {
    const { header } = this.recording;
    const title = header.protocol ? `${header.protocol}${header.seed === null ? "" : `, seed ${header.seed}`}` : `run ${header.run_id}`;
    const { summary } = header;
    const words = [
      plural(header.nodes.length, "node"),
      `${Number(header.duration_s.toPrecision(6))} s`,
      plural(summary.publications, "event"),
      summary.delivery_ratio === null ? null : `${(100 * summary.delivery_ratio).toFixed(1)} % delivered`,
      header.has_positions ? null : "only contacts known, places invented",
      ...Object.entries(header.settings).map(([name, value]) => `${name} ${value}`),
    ];
    if (document.documentElement.dataset.live) words.unshift(header.is_over ? "over" : "live");
    document.title = `${title} · Roamcast replay`;
    document.getElementById("title").textContent = title;
    document.getElementById("subtitle").textContent = words.filter(Boolean).join(" · ");
  }
}
