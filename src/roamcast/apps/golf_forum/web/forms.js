// Forms from what the node says about its event types: one for subscriptions, one for publishing.

import { element } from "./parts.js";

// Buttons to choose the event type; calls `choose` with the chosen one.
export function typeButtons(place, types, choose) {
  const buttons = types.map((type) => element("button", { type: "button", textContent: type.title }));
  const press = (number) => {
    buttons.forEach((button, at) => button.setAttribute("aria-pressed", at === number));
    choose(types[number]);
  };
  buttons.forEach((button, at) => button.addEventListener("click", () => press(at)));
  place.replaceChildren(...buttons);
  press(0);
}

// Fields of a subscription: words to tick, ranges of numbers, the beginning of a text.
export function wishFields(place, type) {
  const numbers = element("div", { className: "numbers" });
  const others = [];
  for (const field of type.fields) {
    const made = { words: ticks, numbers: range, text: beginning }[field.kind](field);
    if (field.kind === "numbers") numbers.append(made);
    else others.push(made);
  }
  place.replaceChildren(...others.slice(0, 1), numbers, ...others.slice(1));
}

function ticks(field) {
  const chips = field.words.map((word) =>
    element("label", {}, element("input", { type: "checkbox", name: field.path, value: word }), element("span", { textContent: word })));
  return element("fieldset", { className: "field" },
    element("legend", { textContent: field.label }), element("div", { className: "chips" }, ...chips));
}

function range(field) {
  const end = (which) => element("input", {
    type: "number", name: `${field.path}-${which}`, min: field.low, max: field.high, inputMode: "numeric",
    placeholder: which === "from" ? field.low : field.high, "aria-label": `${field.label}, ${which}`,
  });
  return element("fieldset", { className: "field" }, element("legend", { textContent: field.label }),
    element("div", { className: "range" }, end("from"), element("span", { className: "faded", textContent: "to" }), end("to")));
}

function beginning(field) {
  const input = element("input", { type: "text", name: field.path, maxLength: 200 });
  return element("div", { className: "field" }, element("label", {}, `${field.label} begins with`, input));
}

// What is filled in, as the node expects it.
export function wished(form, type) {
  const fields = {};
  for (const field of type.fields) {
    if (field.kind === "words") {
      const chosen = [...form.querySelectorAll(`input[name="${field.path}"]:checked`)].map((each) => each.value);
      if (chosen.length) fields[field.path] = chosen;
    } else if (field.kind === "numbers") {
      const ends = ["from", "to"].map((which) => {
        const text = form.elements[`${field.path}-${which}`].value;
        return text === "" ? null : Number(text);
      });
      if (ends.some((each) => each !== null)) fields[field.path] = ends;
    } else if (form.elements[field.path].value) {
      fields[field.path] = form.elements[field.path].value;
    }
  }
  const official = form.elements.official;
  return {
    type: type.type, fields, combine: form.elements.combine.value,
    official: official.checked && !official.closest("[data-official]").hidden,
  };
}

// Fields of an event. An official's hole is fixed.
export function eventFields(place, type, hole) {
  const numbers = element("div", { className: "numbers" });
  const rows = [];
  for (const field of type.fields) {
    const isFixed = field.path === "hole" && hole !== null;
    let input;
    if (field.kind === "words") {
      input = element("select", { name: field.path }, ...field.words.map((word) => element("option", { value: word, textContent: word })));
    } else if (field.kind === "numbers") {
      input = element("input", {
        type: "number", name: field.path, min: field.low, max: field.high, required: true, inputMode: "numeric",
        value: isFixed ? hole : "", readOnly: isFixed, placeholder: `${field.low}–${field.high}`, className: "wide",
      });
    } else {
      input = element("input", { type: "text", name: field.path, maxLength: 200, placeholder: field.optional ? "if you like" : "" });
    }
    const row = element("div", { className: "field" }, element("label", {}, field.label, input));
    if (field.kind === "numbers") numbers.append(row);
    else rows.push(row);
  }
  place.replaceChildren(...rows.slice(0, 1), numbers, ...rows.slice(1));
}

export function entered(form, type) {
  const values = {};
  for (const field of type.fields) {
    const text = form.elements[field.path].value;
    if (text !== "") values[field.path] = field.kind === "numbers" ? Number(text) : text;
  }
  return values;
}
