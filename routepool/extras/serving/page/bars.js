// The probabilities of the labels.

import { counted, copyOf, make, paint, percent } from "./dom.js";
import { cautionsOf } from "./explanation.js";

const FEW = 8; // labels that stand in the model's order; of more, the likeliest

export class Bars {
  constructor(place) {
    Object.assign(this, { place, rows: new Map(), whole: false });
    this.clear();
  }

  clear() {
    this.rows.clear();
    this.place.classList.remove("waiting");
    this.place.replaceChildren(copyOf("nothing-yet"));
  }

  wait() {
    if (this.rows.size) this.place.classList.add("waiting");
    else this.place.replaceChildren(copyOf("skeleton"));
  }

  /** `stale`: no answer came, and what stands here is of another text. */
  done(stale) {
    this.place.classList.toggle("waiting", stale && this.rows.size > 0);
    if (!this.rows.size) this.clear();
  }

  /** `others`, if given, are the probabilities that these are compared with. */
  show({ predicted, probabilities, note, ...reading }, others) {
    const all = Object.entries(probabilities);
    const likeliest = all.toSorted((one, other) => other[1] - one[1]);
    const shown = all.length <= FEW ? all : this.whole ? likeliest : likeliest.slice(0, FEW);
    const rows = shown.map(([label, value]) => this.row(label, value, predicted.includes(label), others?.[label]));
    this.place.replaceChildren(make("h2", {}, "Probabilities"), make("ul", {}, ...rows));
    for (const { sentence } of cautionsOf(reading)) this.place.append(make("p", { class: "hint caution" }, sentence));
    if (note) this.place.append(make("p", { class: "hint" }, note));
    if (all.length > shown.length) this.place.append(this.more(all.length, arguments));
  }

  row(label, probability, chosen, other) {
    const row = this.rows.get(label) ?? emptyRow(label);
    this.rows.set(label, row); // the same element again, so that its bar moves
    row.classList.toggle("chosen", chosen);
    row.querySelector(".share").textContent = percent(probability);
    row.querySelector(".change").textContent = other === undefined ? "" : points(probability - other);
    requestAnimationFrame(() => paint(row, { share: `${100 * probability}%` }));
    return row;
  }

  more(number, shown) {
    const button = make("button", { class: "quiet", type: "button" }, `Show all ${counted(number, "label")}`);
    button.addEventListener("click", () => {
      this.whole = true;
      this.show(...shown);
    });
    return button;
  }
}

function emptyRow(label) {
  const numbers = make("span", {}, make("span", { class: "share" }), make("span", { class: "change" }));
  const track = make("div", { class: "track" }, make("div", { class: "fill" }));
  return make("li", {}, make("span", { class: "name" }, label), numbers, track);
}

const points = (change) => `${change < 0 ? "−" : "+"}${Math.abs(100 * change).toFixed(1)} points`;
