// Making elements of the page. Texts become text nodes: nothing that a recording says can become markup.

export function make(tag, settings = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function facts(...pairs) {
  const list = make("dl", { class: "facts" });
  for (const [name, value] of pairs) {
    if (value !== null && value !== undefined && value !== "") list.append(make("dt", {}, name), make("dd", {}, value));
  }
  return list;
}

export function dot(colour) {
  return make("span", { class: "dot", style: { background: colour } });
}

export function seconds(t) {
  return `${t.toFixed(3)} s`;
}

export function milliseconds(duration_s) {
  const value = 1000 * duration_s;
  return value >= 1000 ? `${(value / 1000).toFixed(2)} s` : `${value.toFixed(value < 10 ? 2 : 1)} ms`;
}

export function percent(share) {
  return share === null || Number.isNaN(share) ? "–" : `${(100 * share).toFixed(1)} %`;
}

export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
