// Numbers and sentences of an explanation, for the page. No elements here.

import { counted } from "./dom.js";

const NARROWEST = 0.1; // range of the weights that is painted, of all there is above the average

/** Offsets of the server count Unicode characters, those of JavaScript UTF-16 code units: an emoji is one, or two. */
export function slicer(text) {
  const places = [];
  let place = 0;
  for (const character of text) {
    places.push(place);
    place += character.length;
  }
  places.push(place);
  return (start, end) => text.slice(places[start], places[end]);
}

/** What the model could not read or know of a text, in sentences and, for a table, in a few words. */
export function cautionsOf({ unread = 0, known = null }) {
  const cautions = [];
  if (unread) {
    const words = `${counted(unread, "more word")} ${unread === 1 ? "was" : "were"}`;
    const left = `${words} not read: the text is longer than the model’s limit.`;
    cautions.push({ sentence: left, brief: `${unread.toLocaleString("en")} unread` });
  }
  if (known === 0) {
    const unknown = "The model knows no word of this text: its probabilities mean nothing.";
    cautions.push({ sentence: unknown, brief: "no known word" });
  }
  return cautions;
}

/** How many parts of the vector the weights of a level belong to. */
export const partsOf = (level) => level.spans[0]?.weights.length ?? 1;

export const roundsOf = ({ levels }) => Math.max(1, ...levels.map((level) => level.spans[0]?.rounds.length ?? 0));

/** The weights of a span in a round, counted from 0; the last ones where rounds were not asked for. */
export const weightsOf = (span, round) => span.rounds[Math.min(round, span.rounds.length - 1)] ?? span.weights;

/**
 * The weights that are painted not at all and strongest: the average, which in standard routing is an even split over
 * the capsules, and the largest of all rounds. The range has a least size, so that a tiny difference does not look large.
 */
function weightScale(level) {
  const weights = level.spans.flatMap((span) => span.weights);
  const average = weights.reduce((sum, weight) => sum + weight, 0) / (weights.length || 1);
  let largest = average + NARROWEST * (1 - average);
  for (const span of level.spans) {
    for (const each of [span.weights, ...span.rounds]) largest = Math.max(largest, ...each);
  }
  return [average, largest];
}

export function largestScore(level) {
  return level.spans.reduce((largest, span) => Math.max(largest, Math.abs(span.score)), 0) || 1;
}

/** By the name of a level; one for all texts that are shown, so that equal tints are equal numbers. */
export function scalesOf(explanations) {
  const scales = {};
  for (const level of explanations.flatMap(({ levels }) => levels)) {
    const { weight: [least, most] = [1, 0], score = 0 } = scales[level.name] ?? {};
    const [average, largest] = weightScale(level);
    const weight = [Math.min(least, average), Math.max(most, largest)];
    scales[level.name] = { weight, score: Math.max(score, largestScore(level)) };
  }
  return scales;
}

export const strongest = (weights) => weights.indexOf(Math.max(...weights));

const SCORES = {
  message: "coupling times the size of the message: never against, and the same for every label",
  capsule: "couplings weighted by what the evidence loses without each capsule",
  "gradient-message": "coupling times message times gradient, couplings held fixed",
  gradient: "gradient times word vector",
  "integrated-gradients": "gradients along the way from a text of unknown words",
  "leave-one-out": "what the evidence loses when the word is dropped",
};

/** What the weights say: made of the part's name and of what they are shares of, whatever the aggregator. */
export function weightsMean({ part, share_of: shareOf, levels }) {
  const many = partsOf(levels[0]) > 1;
  const apart = many && levels.length > 1 ? ` Sentences have ${part}s of their own.` : "";
  if (shareOf === "word") {
    return (
      `Colour is the ${part} that a word goes to, strength how far its coupling is above an even split. ` +
      `A word’s couplings sum to 1 over the ${part}s, whatever the word: ` +
      `they say where it goes, not how much it matters.${apart}`
    );
  }
  if (shareOf === "text" && many) {
    return (
      `Each ${part} splits its attention between the words; strength is how far a word’s share is above the average. ` +
      `It says where a ${part} looked, not how much the word matters.${apart}`
    );
  }
  const weight = shareOf === "text" ? "share of the whole weight" : "weight";
  return (
    `Strength is how far a word’s ${weight} is above the average. ` +
    `It says what the model took in, not how much the word matters.${apart}`
  );
}

export function scoresMean(explanation) {
  const { method, label } = explanation;
  const how = SCORES[method] ? `: ${SCORES[method]}` : "";
  const lines = method === "message" ? "" : ` A solid line speaks for “${label}”, a dashed one against it.`;
  return `How much a word matters, by ${method}${how}.${lines}`;
}
