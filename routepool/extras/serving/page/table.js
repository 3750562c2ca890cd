// Files of texts in and out: lines, CSV, and cells that no spreadsheet takes for a formula.

import { Refused } from "./api.js";

/** { names, rows }: a table with a header; a file of lines has one column. */
export function readTable(name, content) {
  if (/\.txt$/i.test(name)) {
    const lines = content.split(/\r\n|\n|\r/).filter((line) => line.trim());
    return { names: ["text"], rows: lines.map((line) => [line]) };
  }
  if (!/\.csv$/i.test(name)) {
    throw new Refused("A .txt file (one text a line) or a .csv file (with a header) is wanted.");
  }
  const [names, ...rows] = readCsv(content);
  if (!names) throw new Refused("The file is empty.");
  const ragged = rows.findIndex((row) => row.length !== names.length);
  if (ragged >= 0) {
    throw new Refused(`Row ${ragged + 1} has ${rows[ragged].length} cells, and the header has ${names.length}.`);
  }
  return { names, rows };
}

/** Rows of cells (RFC 4180); a header without a comma may be parted by tabs or semicolons. */
export function readCsv(content) {
  const [header] = content.replace(/"[^"]*"/g, "").split(/[\r\n]/, 1);
  const delimiter = [",", "\t", ";"].find((one) => header.includes(one)) ?? ",";
  const rows = [];
  let row = [];
  let place = 0;
  while (place < content.length) {
    const [cell, end] = content[place] === '"' ? quoted(content, place) : plain(content, place, delimiter);
    row.push(cell);
    place = end;
    if (content[place] === delimiter) {
      place += 1;
      if (place < content.length) continue;
      row.push("");
    } else if (place < content.length && !"\r\n".includes(content[place])) {
      throw new Refused(`Row ${rows.length} has characters after a closing quote.`);
    }
    rows.push(row);
    row = [];
    place += content.startsWith("\r\n", place) ? 2 : 1;
  }
  return rows.filter((cells) => cells.length > 1 || cells[0].trim());
}

function quoted(content, start) {
  let cell = "";
  let place = start + 1;
  for (;;) {
    const end = content.indexOf('"', place);
    if (end < 0) throw new Refused("A quote is opened in the file and never closed.");
    cell += content.slice(place, end);
    if (content[end + 1] !== '"') return [cell, end + 1];
    cell += '"';
    place = end + 2;
  }
}

function plain(content, start, delimiter) {
  let end = start;
  while (end < content.length && content[end] !== delimiter && content[end] !== "\n" && content[end] !== "\r") end += 1;
  return [content.slice(start, end), end];
}

/** The column that holds the texts: one that says so, else the one with the longest cells. */
export function textColumn({ names, rows }) {
  const named = names.findIndex((name) => name.trim().toLowerCase() === "text");
  if (named >= 0) return named;
  const sizes = names.map((_, column) => rows.reduce((sum, row) => sum + row[column].length, 0));
  return sizes.indexOf(Math.max(...sizes));
}

export const writeCsv = (rows) => rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");

/** A spreadsheet runs a text that starts like a formula; an apostrophe in front makes it a text again. */
function cell(value) {
  if (typeof value === "number") return String(value);
  const guarded = /^[\t\r\n]|^\s*[=+\-@＝＋－＠]/.test(value) ? `'${value}` : value;
  return `"${guarded.replaceAll('"', '""')}"`;
}
