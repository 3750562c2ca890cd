// The page: what is chosen, what is asked for, and where it is shown.

import { ask, hasKey, useKey } from "./api.js";
import { partColour, ramp } from "./colours.js";
import { byId, counted, make, paint, percent, setOptions } from "./dom.js";
import { cautionsOf, partsOf, roundsOf, scalesOf, scoresMean, weightsMean } from "./explanation.js";
import { FileJob } from "./file.js";
import { Slot } from "./slot.js";
import { followTheme } from "./theme.js";

const PACE = 900; // milliseconds a round is shown while they play

const settings = { view: "where", part: null, round: Infinity, method: undefined, label: undefined };
const slots = [0, 1].map((number) => new Slot(number, later));
const job = new FileJob({ failed, ready: () => model ?? start(), limits: () => model?.limits ?? {}, open: openText });
let model = null;
let starting = null;
let mode = "one";
let waiting = 0;
let asking = null;
let playing = 0;

// --- asking -------------------------------------------------------------------------------------------------------

function start() {
  starting ??= meet().finally(() => (starting = null));
  return starting;
}

async function meet() {
  try {
    model = await ask("labels");
  } catch (error) {
    failed(error);
    return;
  }
  byId("key-form").hidden = true;
  settings.method = model.default_method;
  describe();
  await refresh();
}

function later(delay) {
  clearTimeout(waiting);
  waiting = setTimeout(refresh, delay);
}

async function refresh() {
  asking?.abort();
  const own = (asking = new AbortController());
  if (!model) return start();
  // What is undefined is not sent.
  const question = { method: settings.method, rounds: model.iterations > 1 || undefined };
  const { label } = settings;
  try {
    await slots[0].explain({ ...question, label }, model.limits, own.signal);
    // Scores of two texts can be compared only if they are evidence for the same label.
    const same = { ...question, label: label ?? slots[0].explanation?.label };
    if (mode === "two") await slots[1].explain(same, model.limits, own.signal);
    notice("");
  } catch (error) {
    if (error.name === "AbortError") return undefined;
    settings.method = slots[0].explanation?.method ?? settings.method;
    failed(error);
  }
  show();
  say();
  return undefined;
}

function failed(error) {
  if (error.status !== 401) return notice(error.message);
  if (hasKey()) notice(error.message);
  byId("key-form").hidden = false;
  return byId("key").focus();
}

function notice(text) {
  byId("notice").hidden = !text;
  byId("notice-text").textContent = text;
}

/** The result in a sentence, for screen readers. */
function say() {
  const said = shown().map(({ predicted, probabilities, ...reading }) => {
    const labels = predicted.map((label) => `${label}, ${percent(probabilities[label])}`);
    const cautions = cautionsOf(reading).map(({ sentence }) => `. ${sentence.slice(0, -1)}`);
    return (labels.join("; ") || "no label") + cautions.join("");
  });
  byId("status").textContent = said.length ? `Predicted: ${said.join(". Second text: ")}.` : "";
}

// --- showing ------------------------------------------------------------------------------------------------------

const inUse = () => slots.slice(0, mode === "two" ? 2 : 1);
const shown = () => inUse().flatMap((slot) => slot.explanation ?? []);

function show() {
  settings.scales = scalesOf(shown());
  for (const slot of inUse()) slot.show(settings, slot === slots[0] ? undefined : slots[0].explanation?.probabilities);
  const first = shown().find(({ levels }) => levels.length);
  byId("evidence").hidden = !first;
  byId("evidence").classList.toggle("waiting", inUse().some(({ stale }) => stale));
  if (first) control(first);
}

function control(explanation) {
  const where = settings.view === "where";
  const parts = partsOf(explanation.levels[0]);
  const rounds = roundsOf(explanation);
  const round = Math.min(settings.round, rounds - 1);
  byId("parts").hidden = !where || parts < 2;
  byId("rounds").hidden = !where || rounds < 2;
  byId("method-field").hidden = byId("label-field").hidden = where;
  byId("round").max = rounds;
  byId("round").value = round + 1;
  byId("round-name").textContent = `Round ${round + 1} of ${rounds}`;
  byId("round-back").disabled = round === 0;
  byId("round-on").disabled = round === rounds - 1;
  byId("round-play").textContent = playing ? "Pause" : "Play";
  byId("method").value = settings.method;
  const likeliest = settings.label === undefined ? ` (${explanation.label})` : "";
  byId("label").options[0].textContent = `the likeliest label${likeliest}`;
  byId("meaning").textContent = where ? weightsMean(explanation) : scoresMean(explanation);
  byId("scales").replaceChildren(...explanation.levels.map((level) => scaleOf(explanation, level)));
}

/** What the strongest and the palest tint stand for, at each level. */
function scaleOf(explanation, level) {
  const many = partsOf(level) > 1;
  const { weight, score } = settings.scales[level.name];
  let [least, most] = weight;
  let colours = ["", settings.part === null && many ? "var(--strong-line)" : partColour(settings.part ?? 0)];
  if (settings.view === "score") {
    const against = explanation.method !== "message";
    [least, most] = [against ? -score : 0, score];
    colours = [...(against ? ["var(--against)"] : []), "", "var(--for)"];
  }
  const number = (value) => make("span", {}, value.toFixed(2).replace("-", "−"));
  const name = explanation.levels.length > 1 ? [make("span", {}, level.name)] : [];
  const shades = paint(make("div", { class: "ramp" }), { ramp: ramp(...colours) });
  return make("div", { class: "scale" }, ...name, number(least), shades, number(most));
}

function describe() {
  const { aggregator, capsules: parts, part, iterations, labels } = model;
  const kind = [aggregator];
  if (parts > 1) kind.push(counted(parts, part));
  if (iterations > 1) kind.push(counted(iterations, "iteration"));
  const facts = [kind.join(", "), counted(labels.length, "label")].map((fact) => make("span", {}, fact));
  byId("facts").replaceChildren(make("span", { class: "model" }, model.model), ...facts);
  document.title = `${model.model} · routepool`;
  byId("where-name").textContent = parts > 1 ? "Where each word goes" : "What weight each word gets";
  setOptions(byId("method"), model.methods.map((name) => [name, name]), settings.method);
  setOptions(byId("label"), [["", ""], ...labels.map((label, place) => [String(place), label])], "");
  byId("parts").firstElementChild.textContent = part.charAt(0).toUpperCase() + part.slice(1);
  const choices = [null, ...Array(parts).keys()].map(partChoice);
  byId("parts").replaceChildren(byId("parts").firstElementChild, ...choices);
}

function partChoice(part) {
  const name = part === null ? `Every ${model.part}` : `${model.part} ${part + 1}`;
  const input = make("input", { type: "radio", name: "part", "aria-label": name });
  input.checked = part === settings.part;
  input.addEventListener("change", () => choose({ part }));
  const face = make("span", {}, part === null ? "All" : String(part + 1));
  return make("label", {}, input, part === null ? face : paint(face, { hue: partColour(part) }));
}

// --- choosing -----------------------------------------------------------------------------------------------------

function choose(change) {
  Object.assign(settings, change);
  show();
}

function step(by) {
  const rounds = Math.max(1, ...shown().map(roundsOf));
  choose({ round: Math.min(rounds - 1, Math.max(0, Math.min(settings.round, rounds - 1) + by)) });
}

function play() {
  if (playing) return pause();
  choose({ round: 0 });
  playing = setInterval(() => {
    step(1);
    if (byId("round-on").disabled) pause();
  }, PACE);
  return show();
}

function pause() {
  clearInterval(playing);
  playing = 0;
  show();
}

function enter(next) {
  mode = document.body.dataset.mode = next;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.ariaSelected = String(tab.dataset.mode === mode);
    tab.tabIndex = tab.dataset.mode === mode ? 0 : -1;
  }
  byId("texts").hidden = mode === "file";
  byId("texts").setAttribute("aria-labelledby", `tab-${mode}`);
  byId("file").hidden = mode !== "file";
  notice("");
  if (mode !== "file") refresh();
}

function openText(text) {
  slots[0].text = text;
  enter("one");
  slots[0].area.focus();
}

function listen() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  for (const [place, tab] of tabs.entries()) {
    tab.addEventListener("click", () => enter(tab.dataset.mode));
    tab.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (by) tabs.at((place + by) % tabs.length).focus();
      if (by) document.activeElement.click();
    });
  }
  byId("views").addEventListener("change", (event) => choose({ view: event.target.value }));
  byId("round").addEventListener("input", () => choose({ round: byId("round").valueAsNumber - 1 }));
  byId("round-back").addEventListener("click", () => step(-1));
  byId("round-on").addEventListener("click", () => step(1));
  byId("round-play").addEventListener("click", play);
  byId("method").addEventListener("change", () => {
    settings.method = byId("method").value;
    refresh();
  });
  byId("label").addEventListener("change", () => {
    settings.label = model.labels[byId("label").value];
    refresh();
  });
  byId("notice-close").addEventListener("click", () => notice(""));
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    try {
      useKey(byId("key").value.trim());
    } catch (error) {
      return notice(error.message);
    }
    notice("");
    return start();
  });
  listenForFiles();
}

function listenForFiles() {
  const take = (file) => {
    if (!file) return;
    enter("file");
    job.take(file);
  };
  byId("file-input").addEventListener("change", (event) => {
    take(event.target.files[0]);
    event.target.value = ""; // the same file can be chosen again
  });
  // Anywhere on the page: a file that misses its place must not replace the page.
  document.addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget ?? document.body.classList.remove("over"));
  document.addEventListener("drop", (event) => {
    document.body.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
}

followTheme(byId("theme"));
listen();
start();
