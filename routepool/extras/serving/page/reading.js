// One text in colours: its words, or its sentences, each opening to its words.

import { make, paint, signed } from "./dom.js";
import { capsuleColour, strength } from "./colours.js";
import { largestScore, owner, slicer, strongest, weightsOf } from "./explanation.js";
import { inspect, overview } from "./inspector.js";
import { Routes } from "./routes.js";

const KEYS = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
const SHORT = 200; // characters of a text that is set larger
const TIE = 0.01; // of the painted range: below it no capsule stands out, as in the first round
const TELLING = 0.2; // scores below this share of the largest get no line: a text full of lines says nothing

export class Reading {
  constructor(place, inspector) {
    Object.assign(this, { place, inspector, explanation: null, pinned: null, routes: null, units: new Map() });
    place.addEventListener("pointerover", (event) => this.look(event.target));
    place.addEventListener("pointerleave", () => this.look(this.pinned));
    place.addEventListener("focusin", (event) => this.look(event.target));
    place.addEventListener("click", (event) => this.pin(event.target.closest("[role=button]")));
    place.addEventListener("keydown", (event) => this.step(event));
    new ResizeObserver(() => this.routes?.lay()).observe(place);
  }

  show(explanation, settings) {
    Object.assign(this, { explanation, settings, pinned: null, routes: null });
    this.units.clear();
    this.place.replaceChildren();
    this.inspector.replaceChildren();
    delete this.inspector.dataset.tallest;
    if (!explanation) return;
    this.part = slicer(explanation.text);
    const [first, words] = explanation.levels;
    if (words) this.place.append(...first.units.map((unit, number) => this.sentence(first, unit, number, words)));
    else this.place.append(this.words(first, first.units, 0));
    const capsules = first.units[0]?.weights.length ?? 0;
    if (!words && capsules > 1 && explanation.text.length < SHORT) {
      this.routes = new Routes([...this.units], capsules);
      this.place.append(this.routes.place);
    }
    if (!first.units.length) {
      this.place.replaceChildren(make("p", { class: "hint" }, "There is no word in this text that could be read."));
    }
    this.paint(settings);
  }

  sentence(level, unit, number, words) {
    const text = make("span", { class: "unit" }, this.part(unit.start, unit.end));
    const details = make("details", { class: "sentence" }, make("summary", {}, make("div", {}, text)));
    const own = words.units.filter((word) => word.parent === number);
    details.append(this.words(words, own, unit.start, unit.end));
    details.open = Math.abs(unit.score) === largestScore(level);
    this.units.set(text, { unit, level, kind: "sentence" });
    return details;
  }

  words(level, units, start, end) {
    const size = this.explanation.text.length < SHORT ? "words large" : "words";
    const place = make("div", { class: size, role: "group", "aria-label": "Words; move with the arrow keys" });
    let done = start;
    for (const unit of units) {
      const tabindex = unit === units[0] ? 0 : -1;
      const word = make("span", { class: "unit", role: "button", tabindex, "aria-pressed": false });
      word.append(this.part(unit.start, unit.end));
      place.append(this.part(done, unit.start), word);
      done = unit.end;
      this.units.set(word, { unit, level, kind: "word" });
    }
    place.append(this.part(done, end)); // without an end: to the end of the text
    return place;
  }

  paint(settings) {
    this.settings = settings;
    if (!this.explanation) return;
    for (const [element, { unit, level }] of this.units) {
      const { weight, score } = settings.scales[level.name];
      element.classList.remove("goes", "speaks-for", "speaks-against");
      if (settings.view === "score") paintScore(element, unit, score);
      else paintWeight(element, weightsOf(unit, settings.round), weight, settings.capsule, this.explanation.aggregator);
    }
    this.routes?.paint(settings);
    this.look(this.pinned);
  }

  look(element) {
    this.routes?.look(element ?? this.pinned);
    const found = this.units.get(element) ?? this.units.get(element?.closest?.("summary")?.querySelector(".unit"));
    const text = found && this.part(found.unit.start, found.unit.end);
    if (found) inspect(this.inspector, this.explanation, found, text, this.settings);
    else if (this.explanation && !this.pinned) overview(this.inspector, this.explanation, this.settings, this.part);
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

function paintWeight(element, weights, [none, most], capsule, aggregator) {
  const all = capsule === null && weights.length > 1;
  const shown = all ? strongest(weights) : Math.min(capsule ?? 0, weights.length - 1);
  const share = (weights[shown] - none) / (most - none);
  paint(element, { hue: capsuleColour(shown), strength: strength(share) });
  element.classList.toggle("goes", all && share > TIE);
  element.dataset.capsule = shown + 1;
  const whose = weights.length > 1 ? `${owner(aggregator)} ${shown + 1}, ` : "";
  name(element, `${whose}weight ${weights[shown].toFixed(2)}`);
}

function paintScore(element, unit, scale) {
  const share = Math.abs(unit.score) / scale;
  const side = unit.score < 0 ? "against" : "for";
  paint(element, { hue: `var(--${side})`, strength: strength(share) });
  if (share >= TELLING) element.classList.add(`speaks-${side}`);
  name(element, `score ${signed(unit.score)}`);
}

/** What a screen reader says of a word. */
function name(element, numbers) {
  if (element.role === "button") element.setAttribute("aria-label", `${element.textContent}, ${numbers}`);
}
