// How fast a recording can be played: recorded seconds per second of watching.

export const SPEEDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50];

export function faster(speed) {
  return SPEEDS.find((each) => each > speed * 1.001) ?? speed;
}

export function slower(speed) {
  return SPEEDS.findLast((each) => each < speed * 0.999) ?? speed;
}

// The greatest speed at which `length_s` of the recording take at least `watching_s`.
export function slowMotion(length_s, watching_s) {
  return SPEEDS.findLast((speed) => speed <= length_s / watching_s) ?? SPEEDS[0];
}
