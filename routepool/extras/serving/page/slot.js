// One text: where it is written, its probabilities, its words.

import { Refused, ask } from "./api.js";
import { Bars } from "./bars.js";
import { make } from "./dom.js";
import { Reading } from "./reading.js";

const EXAMPLES = {
  "Two minds": "The plot is thin, but the two leads are a joy to watch.",
  "Few words": "Slow, quiet and never dull.",
  "Change of heart": "I wanted to like it; after an hour I only wanted to leave.",
  "Longer":
    "We went for the music and stayed for everything else. The first half drags, and one subplot goes nowhere at " +
    "all. Then the old man sits down at the piano, and nobody in the room moves. I have rarely seen an ending so " +
    "quiet, so warm and so well earned.",
};

export class Slot {
  /** `changed` is called with a delay in milliseconds when the text is another one. */
  constructor(number, changed) {
    const place = (name) => document.querySelector(`.${name}[data-slot="${number}"]`);
    this.bars = new Bars(place("bars"));
    this.reading = new Reading(place("reading"), place("inspector"));
    Object.assign(this, { explanation: null, asked: "", fresh: false, stale: false });
    this.write(place("composer"), number, changed);
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
  }

  write(place, number, changed) {
    const id = `text-${number}`;
    this.area = make("textarea", { id, placeholder: "Type or paste a text", spellcheck: "false" });
    const run = make("button", { class: "primary", type: "button", title: "Ctrl + Enter" }, "Classify");
    const examples = Object.entries(EXAMPLES).map(([name, text]) => {
      const button = make("button", { class: "example", type: "button", title: text }, name);
      button.addEventListener("click", () => {
        this.text = text;
        changed(0);
      });
      return button;
    });
    this.area.addEventListener("input", () => changed(500));
    this.area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) changed(0);
    });
    run.addEventListener("click", () => changed(0));
    const name = make("label", { for: id }, number ? "Second text" : "Text");
    place.append(name, this.area, make("footer", {}, make("span", {}, "Examples"), ...examples, run));
  }

  clear() {
    Object.assign(this, { explanation: null, asked: "", stale: false });
    this.bars.clear();
    this.reading.show(null);
  }

  /** Ask about the text as it stands; nothing is asked twice in a row. */
  async explain(question, limits, signal) {
    const body = { text: this.text, ...question };
    const asked = JSON.stringify(body);
    if (asked === this.asked) return;
    if (!this.text.trim()) {
      this.clear();
      return;
    }
    this.stale = true; // what is shown is of another text until the answer is there, and pale if none comes
    this.bars.wait();
    try {
      this.explanation = await explanationOf(body, limits, signal);
      Object.assign(this, { asked, fresh: true, stale: false });
    } finally {
      this.bars.done(this.stale);
    }
  }

  /** Put what is known on the page. */
  show(settings, others) {
    if (!this.explanation) return;
    this.bars.show(this.explanation, others);
    if (this.fresh) this.reading.show(this.explanation.levels.length ? this.explanation : null, settings);
    else this.reading.paint(settings);
    this.fresh = false;
  }
}

/** The server's explanation; of a text too long for one, its prediction alone. */
async function explanationOf(body, limits, signal) {
  const { text_characters: most, explained_characters: explained = most } = limits;
  const length = [...body.text].length;
  const number = (value) => value.toLocaleString("en");
  if (length > most) {
    throw new Refused(`This text has ${number(length)} characters, and the server takes ${number(most)}.`);
  }
  if (length <= explained) return (await ask("explain", body, signal)).results[0];
  const { labels, ...rest } = (await ask("predict", { text: body.text }, signal)).results[0];
  const note = `Words are shown of texts of up to ${number(explained)} characters; this one has ${number(length)}.`;
  return { ...rest, predicted: labels, levels: [], note };
}
