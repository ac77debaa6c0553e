// The strip below the network: over time, how many deliveries were due and what became of them, and where faults struck.
//
// A bar stands for the events published in its slice of time: the deliveries they led to, and on top in red the ones that
// never happened. The slider that lies over it is the page's own; this only paints.

const BAR_PX = 4;

export class Timeline {
  constructor(canvas, recording, palette) {
    Object.assign(this, { canvas, recording, palette });
    this.context = canvas.getContext("2d");
    this.bars = null;
  }

  draw(t, selection) {
    const { canvas, context, recording, palette } = this;
    const density = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (canvas.width !== Math.round(width * density) || canvas.height !== Math.round(height * density)) {
      canvas.width = Math.round(width * density);
      canvas.height = Math.round(height * density);
      this.bars = null;
    }
    this.bars ??= this.#count(Math.max(1, Math.floor(width / BAR_PX)));
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, width, height);
    const floor = height - 15;
    this.#bars(width, floor, t);
    this.#scale(width, height, floor);
    context.fillStyle = palette.bad;
    for (const at of recording.fault.t) context.fillRect((at / recording.duration) * width - 0.75, 0, 1.5, 6);
    if (selection?.kind === "event") {
      context.fillStyle = palette.hue(selection.event);
      context.fillRect((recording.event.t[selection.event] / recording.duration) * width - 1.5, 0, 3, floor);
    }
    const x = (t / recording.duration) * width;
    context.fillStyle = palette.ink;
    context.fillRect(x - 1, 0, 2, floor + 3);
    context.beginPath();
    context.arc(x, floor + 3, 5, 0, 2 * Math.PI);
    context.fill();
  }

  #count(bars) {
    const { event, duration } = this.recording;
    const delivered = new Float32Array(bars);
    const missed = new Float32Array(bars);
    for (let row = 0; row < event.t.length; row += 1) {
      const bar = Math.min(bars - 1, Math.floor((event.t[row] / duration) * bars));
      const reach = this.recording.reach(row);
      delivered[bar] += reach.delivered;
      missed[bar] += reach.expected - reach.delivered;
    }
    const highest = delivered.reduce((most, count, bar) => Math.max(most, count + missed[bar]), 1);
    return { delivered, missed, highest };
  }

  #bars(width, floor, t) {
    const { context, palette } = this;
    const { delivered, missed, highest } = this.bars;
    const step = width / delivered.length;
    const now = (t / this.recording.duration) * delivered.length;
    for (let bar = 0; bar < delivered.length; bar += 1) {
      const low = (delivered[bar] / highest) * (floor - 8);
      const high = (missed[bar] / highest) * (floor - 8);
      context.globalAlpha = bar <= now ? 1 : 0.5;
      context.fillStyle = palette.calm;
      context.fillRect(bar * step, floor - low, step - 0.8, low);
      context.fillStyle = palette.bad;
      context.fillRect(bar * step, floor - low - high, step - 0.8, high);
    }
    context.globalAlpha = 1;
  }

  #scale(width, height, floor) {
    const { context, palette, recording } = this;
    context.fillStyle = palette.rule;
    context.fillRect(0, floor + 2, width, 2);
    context.fillStyle = palette.faded;
    context.font = "10.5px system-ui, sans-serif";
    const about = (recording.duration * 90) / width;
    const unit = 10 ** Math.floor(Math.log10(about));
    const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= about);
    for (let mark = 0; mark <= recording.duration * 1.0001; mark += step) {
      const label = `${Number(mark.toPrecision(6))} s`;
      const x = (mark / recording.duration) * width;
      const length = context.measureText(label).width;
      context.fillText(label, Math.max(0, Math.min(x - length / 2, width - length)), height - 1);
    }
  }
}
