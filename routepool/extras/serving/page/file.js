// A file of texts -> a table of predictions, and the same as CSV.

import { Refused, ask } from "./api.js";
import { byId, counted, make, paint, percent, setOptions } from "./dom.js";
import { cautionsOf } from "./explanation.js";
import { readTable, textColumn, writeCsv } from "./table.js";

const LARGEST = 50e6; // bytes; a browser holds it all
const SHOWN = 100; // rows at a time
const TRIES = 5; // of a busy server
const MOST = 64; // texts in a request, where the server allows more

export class FileJob {
  constructor({ failed, ready, limits, open }) {
    Object.assign(this, { failed, ready, limits, open, stop: new AbortController() });
    byId("column").addEventListener("change", () => this.pick(Number(byId("column").value)));
    byId("file-start").addEventListener("click", () => this.run());
    byId("file-save").addEventListener("click", () => this.save());
    byId("file-more").addEventListener("click", () => this.draw());
    byId("file-close").addEventListener("click", () => this.close());
  }

  close() {
    this.stop.abort();
    byId("job").hidden = true;
    byId("drop").hidden = false;
    byId("file-input").focus();
  }

  async take(file) {
    this.close();
    try {
      this.table = readTable(file.name, await read(file));
      if (!this.table.rows.length) throw new Refused("There is no text in the file.");
    } catch (error) {
      this.failed(error);
      return;
    }
    this.name = file.name;
    byId("drop").hidden = true;
    byId("job").hidden = false;
    byId("file-name").textContent = file.name;
    byId("column-field").hidden = this.table.names.length < 2;
    const column = textColumn(this.table);
    const columns = this.table.names.map((name, place) => [String(place), name || `column ${place + 1}`]);
    setOptions(byId("column"), columns, String(column));
    this.pick(column);
    byId("file-start").focus();
  }

  pick(column) {
    this.stop.abort();
    this.texts = this.table.rows.map((row) => row[column]);
    this.results = this.texts.map(() => null);
    this.busy(false);
    this.redraw();
  }

  async run() {
    this.stop = new AbortController();
    const { signal } = this.stop;
    this.busy(true);
    try {
      await this.ready();
      for (const places of this.batches()) {
        const { results } = await patient(places.map((place) => this.texts[place]), signal);
        places.forEach((place, number) => (this.results[place] = results[number]));
        this.advance();
      }
    } catch (error) {
      if (signal.aborted) return;
      this.failed(error);
    }
    this.busy(false);
    this.redraw();
  }

  /** Places of the texts of each request; blank texts and texts above the server's limit are left out. */
  *batches() {
    const { texts: most = MOST, body_bytes: largest = Infinity, text_characters: longest = Infinity } = this.limits();
    let batch = [];
    let bytes = 0;
    for (const [place, text] of this.texts.entries()) {
      if (this.results[place] || !text.trim() || [...text].length > longest) continue;
      const size = 6 * text.length + 3; // as JSON at the most
      if (batch.length && (batch.length >= Math.min(most, MOST) || bytes + size > 0.9 * largest)) {
        yield batch;
        [batch, bytes] = [[], 0];
      }
      batch.push(place);
      bytes += size;
    }
    if (batch.length) yield batch;
  }

  busy(now) {
    const done = this.results.some(Boolean);
    byId("file-start").disabled = now;
    byId("file-start").hidden = done && !now && !this.batches().next().value;
    byId("file-start").textContent = now ? "Classifying …" : done ? "Go on" : "Classify";
    byId("file-save").hidden = now || !done;
    byId("file-progress").hidden = !now;
    this.advance();
  }

  advance() {
    const done = this.results.filter(Boolean).length;
    byId("file-progress").max = this.texts.length;
    byId("file-progress").value = done;
    const texts = counted(this.texts.length, "text");
    byId("file-facts").textContent = done ? `${done.toLocaleString("en")} of ${texts} classified` : texts;
  }

  redraw() {
    const names = ["Row", "Text", "Label", "Probability"].map((name) => make("th", { scope: "col" }, name));
    this.body = make("tbody");
    byId("file-table").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...names)), this.body));
    this.draw();
  }

  draw() {
    const start = this.body.children.length;
    const end = Math.min(this.texts.length, start + SHOWN);
    for (let place = start; place < end; place += 1) this.body.append(this.row(place));
    byId("file-more").hidden = end === this.texts.length;
    byId("file-more").textContent = `Show more: ${(this.texts.length - end).toLocaleString("en")} left`;
  }

  row(place) {
    const text = make("button", { type: "button", title: "See its words" }, this.texts[place]);
    text.addEventListener("click", () => this.open(this.texts[place]));
    const label = make("td", { class: "of-label" });
    const share = make("td", { class: "of-share" });
    const result = this.results[place];
    if (result) {
      const largest = likelihood(result);
      label.append(result.labels.join(", ") || "none");
      for (const { brief } of cautionsOf(result)) label.append(make("span", { class: "hint caution" }, brief));
      const fill = paint(make("div", { class: "fill" }), { share: `${100 * largest}%` });
      share.append(percent(largest), make("div", { class: "track" }, fill));
    } else {
      label.append(make("span", { class: "hint" }, this.reason(place)));
    }
    return make("tr", {}, make("td", {}, String(place + 1)), make("td", {}, text), label, share);
  }

  reason(place) {
    const longest = this.limits().text_characters ?? Infinity;
    if (!this.texts[place].trim()) return "blank";
    return [...this.texts[place]].length > longest ? `over ${longest.toLocaleString("en")} characters` : "–";
  }

  save() {
    const labels = Object.keys(this.results.find(Boolean).probabilities);
    const ofLabels = (result) => labels.map((label) => result?.probabilities[label] ?? "");
    const rows = this.results.map((result, place) => {
      const [label, probability] = result ? [result.labels.join("|"), likelihood(result)] : ["", ""];
      const read = [result?.unread ?? "", result?.known ?? ""];
      return [place + 1, this.texts[place], label, probability, ...ofLabels(result), ...read];
    });
    const each = labels.map((label) => `probability of ${label}`);
    const names = ["row", "text", "label", "probability", ...each, "unread words", "known words"];
    const address = URL.createObjectURL(new Blob(["\ufeff", writeCsv([names, ...rows])], { type: "text/csv" }));
    make("a", { href: address, download: `${this.name.replace(/\.\w+$/, "")}-predictions.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }
}

/** Of the predicted label; of several, the least likely; of none, the likeliest that was not enough. */
function likelihood({ labels, probabilities }) {
  if (!labels.length) return Math.max(...Object.values(probabilities));
  return Math.min(...labels.map((label) => probabilities[label]));
}

async function read(file) {
  if (file.size > LARGEST) {
    const size = Math.ceil(file.size / 1e6);
    throw new Refused(`The file has ${size} MB, and the page reads ${LARGEST / 1e6}; use routepool predict.`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Refused("The file is not UTF-8 text; save it as UTF-8.");
  }
}

/** A busy server is asked again after the seconds that it names. */
async function patient(texts, signal) {
  for (let left = TRIES; ; left -= 1) {
    try {
      return await ask("predict", { texts }, signal);
    } catch (error) {
      if (error.status !== 503 || !left) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000 * error.retryAfter));
    }
  }
}
