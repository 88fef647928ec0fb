"use strict";
const value = (row, column) => {
  const cell = row.cells[column];
  const text = (cell.dataset.value ?? cell.textContent).trim();
  return text !== "" && !isNaN(text) ? Number(text) : text;
};
const compare = (a, b, sign) => {
  if (a === "" || b === "") return (a === "") - (b === "");
  return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
};
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => compare(value(a, column), value(b, column), down ? -1 : 1));
      table.tBodies[0].append(...rows);
    });
  });
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => (each.open = true)));
