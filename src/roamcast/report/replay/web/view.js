// Where metres lie on the screen: the whole map fits at first; the wheel zooms, dragging moves. North is up.

const MARGIN_PX = 34;
const ZOOM_MAX = 40;

export class View {
  constructor(canvas, bounds_m) {
    this.canvas = canvas;
    [this.west, this.south, this.east, this.north] = bounds_m;
    this.context = canvas.getContext("2d");
    this.reset();
  }

  reset() {
    this.zoom = 1;
    this.centreX = (this.west + this.east) / 2;
    this.centreY = (this.south + this.north) / 2;
  }

  // Adapts to the size of the canvas and to the density of the screen.
  fit() {
    const density = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (this.canvas.width !== Math.round(width * density) || this.canvas.height !== Math.round(height * density)) {
      this.canvas.width = Math.round(width * density);
      this.canvas.height = Math.round(height * density);
    }
    this.context.setTransform(density, 0, 0, density, 0, 0);
    this.width = width;
    this.height = height;
    const across = Math.max(1, this.east - this.west);
    const up = Math.max(1, this.north - this.south);
    const fitting = Math.min((width - 2 * MARGIN_PX) / across, (height - 2 * MARGIN_PX) / up);
    this.scale = Math.max(1e-6, fitting) * this.zoom;
  }

  x(x_m) {
    return this.width / 2 + (x_m - this.centreX) * this.scale;
  }

  y(y_m) {
    return this.height / 2 - (y_m - this.centreY) * this.scale;
  }

  zoomAt(x_px, y_px, factor) {
    const zoom = Math.min(ZOOM_MAX, Math.max(1, this.zoom * factor));
    const ratio = zoom / this.zoom;
    const x_m = this.centreX + (x_px - this.width / 2) / this.scale;
    const y_m = this.centreY - (y_px - this.height / 2) / this.scale;
    this.centreX = x_m + (this.centreX - x_m) / ratio;
    this.centreY = y_m + (this.centreY - y_m) / ratio;
    this.zoom = zoom;
    if (zoom === 1) this.reset();
  }

  move(x_px, y_px) {
    this.centreX -= x_px / this.scale;
    this.centreY += y_px / this.scale;
  }
}
