// Colours. Everything fixed comes from the style sheet, so that light and dark are decided in one place.

const NAMES = [
  "page", "panel", "raised", "rule", "ink", "faded", "accent", "area", "border", "link", "node", "node-edge", "down",
  "publisher", "good", "bad", "calm",
];
const GOLDEN_ANGLE = 137.508;

export class Palette {
  constructor(root = document.documentElement) {
    this.root = root;
    this.read();
  }

  read() {
    const style = getComputedStyle(this.root);
    for (const name of NAMES) this[name.replace("-e", "E")] = style.getPropertyValue(`--${name}`).trim();
    this.kinds = style.getPropertyValue("--palette").trim().split(/\s+/);
    this.isLight = this.root.dataset.theme === "light";
  }

  // The n-th of a few kinds.
  kind(number) {
    return this.kinds[number % this.kinds.length];
  }

  // One of many things that need not be told apart by name: neighbours in number are far apart in hue.
  hue(number) {
    const hue = (number * GOLDEN_ANGLE + 205) % 360;
    return this.isLight ? `hsl(${hue} 72% 38%)` : `hsl(${hue} 88% 66%)`;
  }

  // From little (0) to much (1).
  scale(share) {
    const hue = 210 - 200 * Math.min(1, Math.max(0, share));
    return this.isLight ? `hsl(${hue} 75% 42%)` : `hsl(${hue} 85% 62%)`;
  }
}
