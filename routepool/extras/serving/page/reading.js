// One text in colours: its words, or its sentences, each opening to its words.

import { make, paint, signed } from "./dom.js";
import { partColour, strength } from "./colours.js";
import { largestScore, partsOf, slicer, strongest, weightsOf } from "./explanation.js";
import { inspect, overview } from "./inspector.js";
import { Routes } from "./routes.js";

const KEYS = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
const SHORT = 200; // characters of a text that is set larger
const TIE = 0.01; // of the painted range: below it no part stands out, as in the first round
const TELLING = 0.2; // scores below this share of the largest get no line: a text full of lines says nothing

export class Reading {
  constructor(place, inspector) {
    Object.assign(this, { place, inspector, explanation: null, pinned: null, routes: null, spans: new Map() });
    place.addEventListener("pointerover", (event) => this.look(event.target));
    place.addEventListener("pointerleave", () => this.look(this.pinned));
    place.addEventListener("focusin", (event) => this.look(event.target));
    place.addEventListener("click", (event) => this.pin(event.target.closest("[role=button]")));
    place.addEventListener("keydown", (event) => this.step(event));
    new ResizeObserver(() => this.routes?.lay()).observe(place);
  }

  show(explanation, settings) {
    Object.assign(this, { explanation, settings, pinned: null, routes: null });
    this.spans.clear();
    this.place.replaceChildren();
    this.inspector.replaceChildren();
    delete this.inspector.dataset.tallest;
    if (!explanation) return;
    this.characters = slicer(explanation.text);
    const [first, words] = explanation.levels;
    if (words) this.place.append(...first.spans.map((span, number) => this.sentence(first, span, number, words)));
    else this.place.append(this.words(first, first.spans, 0));
    const parts = partsOf(first);
    if (!words && parts > 1 && explanation.text.length < SHORT) {
      this.routes = new Routes([...this.spans], parts);
      this.place.append(this.routes.place);
    }
    if (!first.spans.length) {
      this.place.replaceChildren(make("p", { class: "hint" }, "There is no word in this text that could be read."));
    }
    this.paint(settings);
  }

  sentence(level, span, number, words) {
    const text = make("span", { class: "span" }, this.characters(span.start, span.end));
    const details = make("details", { class: "sentence" }, make("summary", {}, make("div", {}, text)));
    const own = words.spans.filter((word) => word.parent === number);
    details.append(this.words(words, own, span.start, span.end));
    details.open = Math.abs(span.score) === largestScore(level);
    this.spans.set(text, { span, level, kind: "sentence" });
    return details;
  }

  words(level, spans, start, end) {
    const size = this.explanation.text.length < SHORT ? "words large" : "words";
    const place = make("div", { class: size, role: "group", "aria-label": "Words; move with the arrow keys" });
    let done = start;
    for (const span of spans) {
      const tabindex = span === spans[0] ? 0 : -1;
      const word = make("span", { class: "span", role: "button", tabindex, "aria-pressed": false });
      word.append(this.characters(span.start, span.end));
      place.append(this.characters(done, span.start), word);
      done = span.end;
      this.spans.set(word, { span, level, kind: "word" });
    }
    place.append(this.characters(done, end)); // without an end: to the end of the text
    return place;
  }

  paint(settings) {
    this.settings = settings;
    if (!this.explanation) return;
    for (const [element, { span, level }] of this.spans) {
      const { weight, score } = settings.scales[level.name];
      element.classList.remove("goes", "speaks-for", "speaks-against");
      if (settings.view === "score") paintScore(element, span, score);
      else paintWeight(element, weightsOf(span, settings.round), weight, settings.part, this.explanation.part);
    }
    this.routes?.paint(settings);
    this.look(this.pinned);
  }

  look(element) {
    this.routes?.look(element ?? this.pinned);
    const found = this.spans.get(element) ?? this.spans.get(element?.closest?.("summary")?.querySelector(".span"));
    const text = found && this.characters(found.span.start, found.span.end);
    if (found) inspect(this.inspector, this.explanation, found, text, this.settings);
    else if (this.explanation && !this.pinned) overview(this.inspector, this.explanation, this.settings, this.characters);
  }

  pin(element) {
    if (!element) return;
    this.pinned?.setAttribute("aria-pressed", "false");
    this.pinned = this.pinned === element ? null : element;
    this.pinned?.setAttribute("aria-pressed", "true");
    for (const word of element.parentElement.querySelectorAll("[tabindex='0']")) word.tabIndex = -1;
    element.tabIndex = 0;
    this.look(element);
  }

  /** One word of a text is in the tab order; the arrow keys go to its neighbours. */
  step(event) {
    const word = event.target.closest("[role=button]");
    if (!word) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.pin(word);
    }
    if (!(event.key in KEYS) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const words = [...word.parentElement.querySelectorAll("[role=button]")];
    const next = words[Math.min(words.length - 1, Math.max(0, words.indexOf(word) + KEYS[event.key]))];
    word.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}

function paintWeight(element, weights, [none, most], chosen, name) {
  const all = chosen === null && weights.length > 1;
  const shown = all ? strongest(weights) : Math.min(chosen ?? 0, weights.length - 1);
  const share = (weights[shown] - none) / (most - none);
  paint(element, { hue: partColour(shown), strength: strength(share) });
  element.classList.toggle("goes", all && share > TIE);
  element.dataset.part = shown + 1;
  const whose = weights.length > 1 ? `${name} ${shown + 1}, ` : "";
  describe(element, `${whose}weight ${weights[shown].toFixed(2)}`);
}

function paintScore(element, span, scale) {
  const share = Math.abs(span.score) / scale;
  const side = span.score < 0 ? "against" : "for";
  paint(element, { hue: `var(--${side})`, strength: strength(share) });
  if (share >= TELLING) element.classList.add(`speaks-${side}`);
  describe(element, `score ${signed(span.score)}`);
}

/** What a screen reader says of a word. */
function describe(element, numbers) {
  if (element.role === "button") element.setAttribute("aria-label", `${element.textContent}, ${numbers}`);
}
