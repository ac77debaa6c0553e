// What the user touches: buttons, slider, keys, and the canvas itself.

import { make, seconds } from "replay/elements.js";
import { SPEEDS } from "replay/speeds.js";

const SLIDER_STEPS = 1_000_000;
const CLICK_PX = 4; // a press that moves farther is a drag
const PLAY_SHAPE = "M4 2.5v11L13.5 8z";
const PAUSE_SHAPE = "M3.5 2.5h3v11h-3zM9.5 2.5h3v11h-3z";
const TIP_WORDS = 6;
const STEP_S = 1; // of watching, per arrow key

export function connect(app) {
  app.controls = new Controls(app);
  window.addEventListener("resize", () => { app.stale = true; });
  new ResizeObserver(() => { app.stale = true; }).observe(app.view.canvas);
  app.controls.update();
}

class Controls {
  constructor(app) {
    this.app = app;
    for (const name of ["play", "back", "next", "clock", "speed", "slider", "theme", "help", "keys", "tip"]) {
      this[name] = document.getElementById(name);
    }
    this.speed.append(...SPEEDS.map((speed) => make("option", { value: speed }, speedText(speed))));
    this.play.addEventListener("click", () => app.toggle());
    this.back.addEventListener("click", () => app.step(-1));
    this.next.addEventListener("click", () => app.step(1));
    this.theme.addEventListener("click", () => app.theme());
    this.help.addEventListener("click", () => this.keys.showModal());
    this.speed.addEventListener("change", () => app.pace(Number(this.speed.value)));
    this.slider.addEventListener("input", () => app.seek((this.slider.value / SLIDER_STEPS) * app.recording.duration));
    for (const tab of document.querySelectorAll("[role=tab]")) {
      tab.addEventListener("click", () => app.open(tab.dataset.panel));
    }
    document.getElementById("panel").addEventListener("pointerdown", () => { app.held = true; });
    for (const ending of ["pointerup", "pointercancel"]) {
      window.addEventListener(ending, () => setTimeout(() => { app.held = false; app.stale = true; }));
    }
    document.addEventListener("keydown", (press) => this.#key(press));
    this.#canvas(app.view.canvas);
  }

  update() {
    const { app } = this;
    this.play.querySelector("path").setAttribute("d", app.playing ? PAUSE_SHAPE : PLAY_SHAPE);
    this.play.setAttribute("aria-label", app.playing ? "Pause" : "Play");
    this.clock.textContent = app.speed < 0.01 ? `${app.t.toFixed(5)} s` : seconds(app.t);
    this.slider.value = Math.round((app.t / app.recording.duration) * SLIDER_STEPS);
    this.slider.setAttribute("aria-valuetext", seconds(app.t));
    this.speed.value = String(app.speed);
  }

  #key(press) {
    const { app } = this;
    if (press.ctrlKey || press.metaKey || press.altKey || this.keys.open) return;
    const onControl = ["BUTTON", "SELECT", "INPUT"].includes(press.target.tagName) && press.target !== this.slider;
    const step_s = STEP_S * app.speed * (press.shiftKey ? 10 : 1);
    const acts = {
      " ": () => app.toggle(),
      ArrowLeft: () => app.seek(app.t - step_s),
      ArrowRight: () => app.seek(app.t + step_s),
      ArrowUp: () => app.hurry(1),
      ArrowDown: () => app.hurry(-1),
      Home: () => app.seek(0),
      End: () => app.seek(app.recording.duration),
      Escape: () => app.select(null),
      n: () => app.step(1),
      p: () => app.step(-1),
      f: () => app.selection?.kind === "event" && app.follow(app.selection.event),
      t: () => app.theme(),
      0: () => { app.view.reset(); app.stale = true; },
      "?": () => this.keys.showModal(),
    };
    const key = press.key.length === 1 ? press.key.toLowerCase() : press.key;
    // A focused button keeps the keys that work it; everything else is for the player.
    if (!(key in acts) || (onControl && (key === " " || press.target.tagName === "SELECT"))) return;
    press.preventDefault();
    acts[key]();
  }

  #canvas(canvas) {
    const { app } = this;
    let pressed = null;
    canvas.addEventListener("pointerdown", (press) => {
      pressed = { x: press.offsetX, y: press.offsetY, moved: false };
      canvas.setPointerCapture(press.pointerId);
    });
    canvas.addEventListener("pointermove", (move) => {
      if (pressed) {
        const far = Math.hypot(move.offsetX - pressed.x, move.offsetY - pressed.y) > CLICK_PX;
        pressed.moved ||= far;
        if (pressed.moved) app.view.move(move.movementX, move.movementY);
        app.stale = true;
      } else {
        this.#point(move.offsetX, move.offsetY);
      }
    });
    canvas.addEventListener("pointerup", (release) => {
      const node = app.scene.nodeAt(release.offsetX, release.offsetY);
      if (pressed && !pressed.moved) app.select(node < 0 ? null : { kind: "node", node });
      pressed = null;
    });
    canvas.addEventListener("pointerleave", () => this.#point(-1e4, -1e4));
    canvas.addEventListener("dblclick", () => { app.view.reset(); app.stale = true; });
    canvas.addEventListener("wheel", (turn) => {
      turn.preventDefault();
      app.view.zoomAt(turn.offsetX, turn.offsetY, Math.exp(-turn.deltaY / 400));
      app.stale = true;
    }, { passive: false });
  }

  #point(x, y) {
    const { app } = this;
    const node = app.scene.nodeAt(x, y);
    if (node !== app.hover) app.stale = true;
    app.hover = node;
    app.view.canvas.style.cursor = node < 0 ? "default" : "pointer";
    this.tip.hidden = node < 0;
    if (node < 0) return;
    this.tip.textContent = this.#describe(node);
    const left = Math.min(app.view.width - this.tip.offsetWidth - 6, x + 14);
    Object.assign(this.tip.style, { left: `${left}px`, top: `${Math.max(4, y - 34)}px` });
  }

  #describe(node) {
    const { recording, moment, aspects } = this.app;
    const words = [`node ${recording.nodeName(node)}`];
    if (!moment.up[node]) words.push("down");
    if (recording.publishes[node]) words.push("publishes");
    for (const aspect of aspects) {
      for (const row of moment.rowsAt(aspect, node)) {
        const peer = recording.structure.peer[row];
        words.push([aspect.name, peer >= 0 ? `→ ${recording.nodeName(peer)}` : "", aspect.words(row)].filter(Boolean).join(" "));
      }
    }
    return words.slice(0, TIP_WORDS).join(" · ");
  }
}

function speedText(speed) {
  return speed >= 1 ? `${speed}×` : `1/${Math.round(1 / speed)}×`;
}
