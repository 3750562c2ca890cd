// Lines from the words down to the parts, as thick as the coupling; only for texts that fit on one line.

import { make, paint } from "./dom.js";
import { partColour } from "./colours.js";
import { weightsOf } from "./explanation.js";

const NAMES = "http://www.w3.org/2000/svg";
const DEPTH = 150; // from the words to the parts, in pixels
const THICKEST = 8;
const FAINTEST = 0.1; // opacity of a line that is not above the average

export class Routes {
  /** `words` are pairs of an element and its span. */
  constructor(words, parts) {
    const numbers = [...Array(parts).keys()];
    const line = (part) => coloured(draw("path"), part);
    this.words = words.map(([element, { span }]) => ({ element, span, lines: numbers.map(line) }));
    this.ends = numbers.map((part) => coloured(make("span", { class: "part" }, String(part + 1)), part));
    this.picture = draw("svg");
    this.picture.append(...this.words.flatMap(({ lines }) => lines));
    this.place = make("div", { class: "routes", "aria-hidden": "true" }, this.picture, ...this.ends);
  }

  paint({ view, round, part, scales }) {
    const [none, most] = scales.words.weight;
    this.place.hidden = view !== "where";
    for (const { span, lines } of this.words) {
      weightsOf(span, round).forEach((weight, place) => {
        const shown = part === null || part === place;
        const share = Math.max(FAINTEST, (weight - none) / (most - none));
        lines[place].style.strokeWidth = `${(THICKEST * weight) / most}px`;
        lines[place].style.opacity = shown ? share : 0;
      });
    }
    this.ends.forEach((end, place) => end.classList.toggle("aside", part !== null && part !== place));
    this.lay();
  }

  /** Put the ends of the lines where the words stand now; words on several lines get none. */
  lay() {
    const { left, width } = this.place.parentElement.getBoundingClientRect();
    const boxes = this.words.map(({ element }) => element.getBoundingClientRect());
    this.place.classList.toggle("broken", boxes.some(({ top }) => Math.abs(top - boxes[0].top) > 4));
    const inset = parseFloat(getComputedStyle(this.place.parentElement).paddingLeft);
    const end = Math.max(...boxes.map((box) => box.right)) - left - inset;
    const span = Math.min(width - 2 * inset, Math.max(end, 320));
    const middles = this.ends.map((_, place) => ((place + 0.5) * span) / this.ends.length);
    this.ends.forEach((one, place) => paint(one, { x: `${middles[place]}px` }));
    this.words.forEach(({ lines }, word) => {
      const start = boxes[word].left + boxes[word].width / 2 - left - inset;
      lines.forEach((line, place) => {
        const [half, middle] = [DEPTH / 2, middles[place]];
        line.setAttribute("d", `M${start} 0C${start} ${half} ${middle} ${half} ${middle} ${DEPTH}`);
      });
    });
  }

  /** Only the lines of one word, or all of them again. */
  look(element) {
    this.place.classList.toggle("one", this.words.some((word) => word.element === element));
    for (const word of this.words) word.lines.forEach((line) => line.classList.toggle("own", word.element === element));
  }
}

const draw = (tag) => document.createElementNS(NAMES, tag);
const coloured = (element, part) => paint(element, { hue: partColour(part) });
