// What the server says of a text, read for the page. No elements here.

export const ROUTING = ["routing", "reverse-routing"];
const NARROWEST = 0.1; // range of the weights that is painted, of all there is above the average

/** What the weights of a word belong to: capsules, or the rows of attention. */
export const owner = (aggregator) => (ROUTING.includes(aggregator) ? "capsule" : "row");

/** Server offsets count Unicode characters, JavaScript's count UTF-16 units: an emoji is one and two. */
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
    const number = unread.toLocaleString("en");
    const left = `${number} more words were not read: the text is longer than the model’s limit.`;
    cautions.push({ sentence: left, brief: `${number} unread` });
  }
  if (known === 0) {
    const unknown = "The model knows no word of this text: its probabilities mean nothing.";
    cautions.push({ sentence: unknown, brief: "no known word" });
  }
  return cautions;
}

export const roundsOf = ({ levels }) => Math.max(1, ...levels.map((level) => level.units[0]?.rounds.length ?? 0));

/** The weights of a unit in a round, counted from 0; the last ones where rounds were not asked for. */
export const weightsOf = (unit, round) => unit.rounds[Math.min(round, unit.rounds.length - 1)] ?? unit.weights;

/**
 * The weights that are painted not at all and strongest: the average, which in standard routing is an even split over
 * the capsules, and the largest of all rounds. The range is never so small that a hair above it looks like much.
 */
function weightScale(level) {
  const weights = level.units.flatMap((unit) => unit.weights);
  const average = weights.reduce((sum, weight) => sum + weight, 0) / (weights.length || 1);
  let largest = average + NARROWEST * (1 - average);
  for (const unit of level.units) {
    for (const each of [unit.weights, ...unit.rounds]) largest = Math.max(largest, ...each);
  }
  return [average, largest];
}

export function largestScore(level) {
  return level.units.reduce((largest, unit) => Math.max(largest, Math.abs(unit.score)), 0) || 1;
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

const WEIGHTS = {
  routing:
    "Colour is the capsule that a word goes to, strength how far its coupling is above an even split. " +
    "A word’s couplings sum to 1 over the capsules, whatever the word: " +
    "they say where it goes, not how much it matters.",
  "reverse-routing":
    "Each capsule splits one unit of attention between the words; " +
    "strength is how far a word’s part is above the average. " +
    "It says where a capsule looked, not how much the word matters.",
  max:
    "Strength is how far the share of features whose maximum lies at the word is above the average. " +
    "It says what was kept, not how much it matters.",
  mean: "Average pooling gives every word the same weight. How much each word matters is the other view.",
};
const ATTENTION =
  "Strength is how far a word’s part of the attention is above the average. " +
  "It says where the model looked, not how much the word matters.";

const SCORES = {
  message: "coupling times the size of the message: never against, and the same for every label",
  capsule: "couplings weighted by what the evidence loses without each capsule",
  "gradient-message": "coupling times message times gradient, couplings held fixed",
  gradient: "gradient times word vector",
  "integrated-gradients": "gradients along the way from a text of unknown words",
  "leave-one-out": "what the evidence loses when the word is dropped",
};

export function weightsMean(explanation) {
  const apart = explanation.levels.length > 1 && ROUTING.includes(explanation.aggregator);
  return (WEIGHTS[explanation.aggregator] ?? ATTENTION) + (apart ? " Sentences have capsules of their own." : "");
}

export function scoresMean(explanation) {
  const { method, label } = explanation;
  const how = SCORES[method] ? `: ${SCORES[method]}` : "";
  const lines = method === "message" ? "" : ` A solid line speaks for “${label}”, a dashed one against it.`;
  return `How much a word matters, by ${method}${how}.${lines}`;
}
