// The numbers of one word or sentence; of the whole text while none is looked at.

import { counted, make, paint, percent, signed } from "./dom.js";
import { partColour } from "./colours.js";
import { partsOf, roundsOf, weightsOf } from "./explanation.js";

const MOST = 5; // words that are named while none is looked at

export function inspect(place, explanation, { span, level, kind }, text, settings) {
  const { part, share_of: shareOf, label, method } = explanation;
  const weights = weightsOf(span, settings.round);
  const whose = method === "message" ? "" : ` for ${label}`;
  const score = make("p", {}, make("span", { class: "number" }, signed(span.score)), ` score${whose}`);
  const largest = shareOf === "word" ? 1 : settings.scales[level.name].weight[1];
  const given = weights.length > 1 ? `What ${part}s gave this ${kind}` : `Weight of this ${kind}`;
  const name = title(shareOf === "word" ? `Couplings of this ${kind}, sum 1` : given);
  const shown = [make("h3", {}, text), score, name, gauges(weights, largest)];
  if (weights.length > 1 && span.rounds.length > 1) shown.push(rounds(span.rounds, settings.round));
  put(place, shown);
}

/** `characters` gives those of a span. */
export function overview(place, explanation, settings, characters) {
  const { part, share_of: shareOf, levels } = explanation;
  const { spans } = levels.at(-1);
  const hint = (text) => make("p", { class: "hint later" }, text);
  const how = "Point at a word, tap it, or move with the arrow keys to see its numbers.";
  const shown = [make("p", { class: "hint" }, how)];
  if (settings.view === "score") {
    const ranked = spans.toSorted((one, other) => Math.abs(other.score) - Math.abs(one.score)).slice(0, MOST);
    const rows = ranked.map((span) => ofWord(characters(span.start, span.end), span.score, settings.scales.words.score));
    shown.push(title("Words that matter most"), ...rows);
  } else if (shareOf === "word" && spans.length) {
    const totals = spans[0].weights.map(() => 0);
    for (const span of spans) weightsOf(span, settings.round).forEach((weight, number) => (totals[number] += weight));
    const sentences = levels.length > 1 ? ` in ${counted(levels[0].spans.length, "sentence")}` : "";
    const name = `What each ${part} receives of ${counted(spans.length, "word")}${sentences}`;
    shown.push(title(name), gauges(totals, Math.max(...totals), 1));
  }
  if (settings.view === "where" && partsOf(levels[0]) > 1 && roundsOf(explanation) > 1) {
    shown.push(hint("In the first round all weights are alike; step through the rounds to see them tighten."));
  }
  put(place, shown);
}

/** It never shrinks while a text is shown: that would move the words away on a page scrolled to its end. */
function put(place, shown) {
  place.replaceChildren(make("div", { class: "stay" }, ...shown));
  place.style.minHeight = "";
  const height = Math.max(place.offsetHeight, Number(place.dataset.tallest ?? 0));
  place.dataset.tallest = height;
  place.style.minHeight = `${height}px`;
}

const title = (text) => make("p", { class: "title" }, text);

function gauges(weights, largest, digits = 2) {
  const rows = weights.map((weight, number) => {
    const fill = paint(make("div", { class: "fill" }), { share: percent(weight / largest).replace(" ", "") });
    const name = make("b", {}, String(number + 1));
    const value = make("span", { class: "value" }, weight.toFixed(digits));
    const row = make("div", { class: "gauge" }, name, make("div", { class: "track" }, fill), value);
    return paint(row, { hue: partColour(number) });
  });
  return make("div", { class: "gauges" }, ...rows);
}

function ofWord(text, score, largest) {
  const fill = paint(make("div", { class: "fill" }), { share: `${(100 * Math.abs(score)) / largest}%` });
  const track = make("div", { class: "track" }, fill);
  const value = make("span", { class: "value" }, signed(score));
  const row = make("div", { class: "gauge of-word" }, make("span", {}, text), track, value);
  return paint(row, { hue: `var(--${score < 0 ? "against" : "for"})` });
}

function rounds(all, now) {
  const rows = all.map((weights, round) => {
    const total = weights.reduce((sum, weight) => sum + weight, 0) || 1;
    const parts = weights.map((weight, number) => {
      return paint(make("i"), { share: `${((100 * weight) / total).toFixed(2)}%`, hue: partColour(number) });
    });
    const shares = make("div", { class: "shares" }, ...parts);
    const row = make("div", { class: "gauge of-round" }, make("b", {}, String(round + 1)), shares);
    row.classList.toggle("now", round === Math.min(now, all.length - 1));
    return row;
  });
  return make("div", { class: "later" }, title("Round by round"), ...rows);
}
