// Elements without markup: every string becomes a text node or an attribute, none is ever parsed.

export const byId = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A copy of an element of the page's own <template>. */
export const copyOf = (id) => byId(id).content.firstElementChild.cloneNode(true);

/** CSS variables, through the object model: the content policy forbids style attributes. */
export function paint(element, variables) {
  for (const [name, value] of Object.entries(variables)) element.style.setProperty(`--${name}`, value);
  return element;
}

export function setOptions(select, options, chosen) {
  select.replaceChildren(...options.map(([value, name]) => make("option", { value }, name)));
  select.value = chosen;
}

export const percent = (share) => `${(100 * share).toFixed(1)} %`;
export const signed = (number) => (number < 0 ? "−" : "+") + Math.abs(number).toFixed(2);
export const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
