/* Buttons above each table that download it as CSV or Excel. Numbers are numbers in the base unit, which the heading of their
   column names, or that of their row where a column has several. Ignored: formats, colours and merged cells. */
(() => {
const BASE_UNITS = {ns: ["ns", 1], us: ["ns", 1e3], ms: ["ns", 1e6], s: ["ns", 1e9], min: ["ns", 6e10], h: ["ns", 3.6e12],
  B: ["B", 1], KiB: ["B", 2 ** 10], MiB: ["B", 2 ** 20], GiB: ["B", 2 ** 30], TiB: ["B", 2 ** 40], PiB: ["B", 2 ** 50],
  "B/s": ["B/s", 1], "kB/s": ["B/s", 1e3], "MB/s": ["B/s", 1e6], "GB/s": ["B/s", 1e9], uJ: ["uJ", 1], mJ: ["uJ", 1e3], J: ["uJ", 1e6],
  kJ: ["uJ", 1e9], TB: ["TB", 1], W: ["W", 1], years: ["years", 1], "%": ["%", 1], M: ["", 1e6], G: ["", 1e9], x: ["", 1], "": ["", 1]};

/* A cell: its number and unit, or its text. `data-value` has the exact number in the base unit. */
function measured(cell) {
  const text = cell.textContent.trim().replace(/^★ /, ""), exact = cell.dataset.value;
  const found = /^([-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?) ?([A-Za-z%/]*?)( less)?$/.exec(text);
  const base = found && BASE_UNITS[found[2]];
  if (!base) return {value: text === "-" ? "" : text, unit: null};
  const number = exact === undefined ? Number(found[1].replaceAll(",", "")) * base[1] : Number(exact);
  return {value: Number((found[3] && exact === undefined ? 1 / number : number).toPrecision(15)), unit: base[0]};
}
function rowsOf(table) {
  const rows = [...table.rows].map(row => [...row.cells].map(cell =>
    cell.tagName === "TH" && cell.scope !== "row" ? {value: cell.textContent.trim(), unit: null} : measured(cell)));
  const columns = rows.reduce((most, row) => Math.max(most, row.length), 0);
  const named = units => { const [unit, ...others] = new Set(units.filter(each => each)); return others.length ? null : unit || ""; };
  const units = Array.from({length: columns}, (_, at) => named(rows.map(row => row[at]?.unit)));
  const texts = rows.map(row => row.map(cell => cell.value));
  const heading = (text, unit) => unit && !String(text).endsWith(`(${unit})`) ? `${text} (${unit})`.trim() : text;
  if (units.includes(null)) return texts.map((row, at) => [heading(row[0], named(rows[at].map(cell => cell.unit))), ...row.slice(1)]);
  return texts.map((row, at) => at ? row : row.map((text, column) => heading(text, units[column])));
}
function csv(rows) {
  const quoted = value => /[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value;
  return rows.map(row => row.map(quoted).join(",")).join("\r\n") + "\r\n";
}

/* Excel: a ZIP of XML without compression. */
const CRC = Uint32Array.from({length: 256}, (_, at) => {
  let value = at;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? value >>> 1 ^ 0xEDB88320 : value >>> 1;
  return value;
});
const checksum = bytes => ~bytes.reduce((sum, byte) => CRC[(sum ^ byte) & 255] ^ sum >>> 8, -1) >>> 0;
function zip(files) {
  const coder = new TextEncoder(), parts = [], index = [];
  let at = 0;
  const little = (...fields) => Uint8Array.from(fields.flatMap(([value, size]) =>
    Array.from({length: size}, (_, byte) => value >>> 8 * byte & 255)));
  for (const [path, text] of files) {
    const name = coder.encode(path), data = coder.encode(text);
    // Version, flags, no compression, 1 January 1980, checksum, sizes, length of the name, no extra field.
    const about = [[20, 2], [0, 2], [0, 2], [0, 2], [33, 2], [checksum(data), 4], [data.length, 4], [data.length, 4], [name.length, 2], [0, 2]];
    const head = little([0x04034b50, 4], ...about);
    index.push(little([0x02014b50, 4], [20, 2], ...about, [0, 2], [0, 2], [0, 2], [0, 4], [at, 4]), name);
    parts.push(head, name, data);
    at += head.length + name.length + data.length;
  }
  const size = index.reduce((sum, each) => sum + each.length, 0);
  const end = little([0x06054b50, 4], [0, 2], [0, 2], [files.length, 2], [files.length, 2], [size, 4], [at, 4], [0, 2]);
  return new Blob([...parts, ...index, end], {type: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"});
}
function excel(rows, name) {
  const XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
  const OPEN = "http://schemas.openxmlformats.org", MAIN = `xmlns="${OPEN}/spreadsheetml/2006/main"`;
  const KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml", RELATED = `${OPEN}/officeDocument/2006/relationships`;
  const safe = text => String(text).replace(/[<>&"]/g, each => `&#${each.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "");
  const cell = (value, bold) => typeof value === "number" ? `<c><v>${value}</v></c>`
    : `<c t="inlineStr"${bold ? ' s="1"' : ""}><is><t xml:space="preserve">${safe(value)}</t></is></c>`;
  const sheet = rows.map((row, at) => `<row>${row.map(value => cell(value, !at)).join("")}</row>`).join("");
  const links = of => `${XML}<Relationships xmlns="${OPEN}/package/2006/relationships">${of.map(([kind, target], at) =>
    `<Relationship Id="rId${at + 1}" Type="${RELATED}/${kind}" Target="${target}"/>`).join("")}</Relationships>`;
  const parts = [["workbook", "sheet.main"], ["worksheets/sheet1", "worksheet"], ["styles", "styles"]];
  const types = parts.map(([path, kind]) => `<Override PartName="/xl/${path}.xml" ContentType="${KIND}.${kind}+xml"/>`).join("");
  const font = bold => `<font>${bold ? "<b/>" : ""}<sz val="11"/><name val="Calibri"/></font>`;
  const format = of => `<xf numFmtId="0" fontId="${of}" fillId="0" borderId="0"/>`;
  return zip([
    ["[Content_Types].xml", `${XML}<Types xmlns="${OPEN}/package/2006/content-types"><Default Extension="rels" ` +
      `ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>${types}</Types>`],
    ["_rels/.rels", links([["officeDocument", "xl/workbook.xml"]])],
    ["xl/workbook.xml", `${XML}<workbook ${MAIN} xmlns:r="${RELATED}"><sheets><sheet name="${safe(name).slice(0, 31)}" sheetId="1" r:id="rId1"/></sheets></workbook>`],
    ["xl/_rels/workbook.xml.rels", links([["worksheet", "worksheets/sheet1.xml"], ["styles", "styles.xml"]])],
    ["xl/worksheets/sheet1.xml", `${XML}<worksheet ${MAIN}><sheetData>${sheet}</sheetData></worksheet>`],
    ["xl/styles.xml", `${XML}<styleSheet ${MAIN}><fonts count="2">${font(false)}${font(true)}</fonts><fills count="1"><fill><patternFill patternType="none"/></fill></fills>` +
      `<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders><cellStyleXfs count="1">${format(0)}</cellStyleXfs><cellXfs count="2">${format(0)}${format(1)}</cellXfs></styleSheet>`],
  ]);
}

const style = document.createElement("style");
style.textContent = `.export { display: flex; gap: 6px; margin: 6px 0; position: sticky; left: 0; } @media print { .export { display: none; } }
  .export button { font: inherit; font-size: 12px; padding: 1px 8px; color: var(--dim); background: none; cursor: pointer;
    border: 1px solid var(--line); border-radius: 5px; }`;
document.head.append(style);
for (const table of document.querySelectorAll("table:not(.operation)")) {
  const bar = document.createElement("div"), name = (table.className || "table").replace(" ", "-");
  bar.className = "export";
  const kinds = [["CSV", "csv", rows => new Blob([csv(rows)], {type: "text/csv"})], ["Excel", "xlsx", rows => excel(rows, name)]];
  for (const [label, ending, made] of kinds) {
    const button = document.createElement("button");
    Object.assign(button, {type: "button", textContent: label, title: `Download this table as ${label}`});
    button.addEventListener("click", () => {
      const link = document.createElement("a");
      const title = document.title.replace(/ - Palimpsest$/, "").replace(/[^\w.-]+/g, "-");
      Object.assign(link, {href: URL.createObjectURL(made(rowsOf(table))), download: `${title}-${name}.${ending}`});
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    bar.append(button);
  }
  (table.closest(".wide")?.firstElementChild || table).before(bar);
}
})();
